"""Which thread writes, and what a signal may interrupt."""

import signal
import threading

import pytest

from driftbandit import Features, Loop, Number, Reward
from driftbandit.loop.deciding.offers import LONGEST, MOST, Offers

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(context={"age": Number(18, 90)}, arm={"price": Number(0, 100)})
ARMS = {"a": {"price": 9}, "b": {"price": 50}}


def opened(folder):
    return Loop(folder / "a.db", features=FEATURES, reward=Reward(0, 1), exploration=0.1)


def each_append(loop, monkeypatch, first):
    """Call `first` before every append to the ledger."""
    append = loop.ledger.append

    def and_first(*args):
        first()
        append(*args)

    monkeypatch.setattr(loop.ledger, "append", and_first)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_cuts_no_event_in_half(tmp_path, monkeypatch, name):
    number = getattr(signal, name)

    def stop(*_):
        raise InterruptedError(name)

    before = signal.signal(number, stop)
    try:
        with opened(tmp_path) as loop:
            loop.decide({"age": 20}, ARMS, id="first")
            with monkeypatch.context() as patched:
                each_append(loop, patched, lambda: signal.raise_signal(number))
                with pytest.raises(InterruptedError, match=name):
                    loop.decide({"age": 30}, ARMS, id="second")
            assert signal.getsignal(number) is stop
            assert loop.reward("second", 1) == "counted"
            assert [each.logged == each.computed for each in loop.audits()] == [True, True]
    finally:
        signal.signal(number, before)


def test_a_caller_that_comes_alone_writes_itself(tmp_path, monkeypatch):
    with opened(tmp_path) as loop:
        wrote = []
        each_append(loop, monkeypatch, lambda: wrote.append(threading.current_thread()))
        made = loop.decide({"age": 20}, ARMS)
        loop.reward(made.id, 1)
        assert wrote == [threading.current_thread()] * 2


def test_the_thread_of_the_writer_serves_callers_that_come_meanwhile(tmp_path, monkeypatch):
    with opened(tmp_path) as loop:
        wrote, begun, go_on = [], threading.Event(), threading.Event()

        def wait():
            wrote.append(threading.current_thread().name)
            begun.set()
            assert go_on.wait(30)

        each_append(loop, monkeypatch, wait)
        asked = [
            threading.Thread(target=loop.decide, args=({"age": 20}, ARMS), name=f"caller {k}")
            for k in range(3)
        ]
        asked[0].start()
        assert begun.wait(30)
        for each in asked[1:]:
            each.start()
        go_on.set()
        for each in asked:
            each.join()
        assert wrote[0] == "caller 0"
        assert len(loop.log()) == 3


def test_arms_that_are_offered_again_have_the_same_rows():
    plan, offers = FEATURES.plan, Offers()
    lists = [
        [{"price": 1}, {"price": 2.5}],
        [{"price": 1.0}, {"price": 2.5}],
        [{"price": None}, {"price": 0}],
        [{"price": float("nan")}, {"price": -0.0}],
        [{"price": 150}, {}],
    ]
    for arms in [*lists, *lists]:
        for context in ({"age": 20}, {}, {"age": None}):
            assert (offers.rows(plan, context, arms) == plan.encode(context, arms)).all()
    changing = [{"price": 3}]
    first = offers.rows(plan, {"age": 20}, changing)
    changing[0]["price"] = 90
    assert (offers.rows(plan, {"age": 20}, changing) != first).any()


@pytest.mark.parametrize("wrong", [[{"price": "9"}], [{"prize": 9}], ["a"], [{"price": True}], []])
def test_arms_that_are_wrong_are_refused_each_time(wrong):
    plan, offers = FEATURES.plan, Offers()
    offers.rows(plan, {"age": 20}, [{"price": 1}])
    for _ in range(2):
        with pytest.raises(ValueError) as found:
            plan.encode({"age": 20}, wrong)
        with pytest.raises(ValueError) as same:
            offers.rows(plan, {"age": 20}, wrong)
        assert str(same.value) == str(found.value)


def test_few_lists_of_arms_are_kept():
    plan, offers = FEATURES.plan, Offers()
    for k in range(3 * MOST):
        offers.rows(plan, {"age": 20}, [{"price": k}])
        assert 1 <= offers.kept <= MOST
    before = offers.kept
    offers.rows(plan, {"age": 20}, [{"price": 9}] * (LONGEST // 4))
    assert offers.kept == before

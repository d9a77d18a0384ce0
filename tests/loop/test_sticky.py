"""Sticky answers: a key that asks again soon gets its decision again, drawn and logged once."""

import threading

import numpy as np
import pytest

from driftbandit import DOMD, Budget, Category, Features, Loop, Number, Reward

FEATURES = Features(context={"age": Number(0, 100)}, arm={"name": Category(["a", "b", "c"])})
ARMS = {name: {"name": name} for name in "abc"}
NEW = {
    "features": FEATURES,
    "reward": Reward(0, 1, wait=5, missing=0),
    "policy": DOMD,
    "exploration": 0.9,
    "arms": ARMS,
    "sticky": 60,
}
AGE = {"age": 30}


def opened(path=":memory:", **options):
    return Loop(path, **{**NEW, **options}, training="inline")


@pytest.fixture(params=["sqlite", "postgres"])
def path(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    return request.getfixturevalue("postgres").url()


def test_the_answer_follows_the_rule_as_it_is_said(path):
    """Against a list of all decisions, over random questions, cancels, pauses and restarts."""
    rng, made, offered, now = np.random.default_rng(7), [], set(ARMS), 1000.0
    loop = opened(path, clock="events")
    for _ in range(300):
        now += float(rng.exponential(4.0))
        key, what = f"user {rng.integers(4)}", rng.random()
        mine = [each for each in made if each["key"] == key]
        if what < 0.06 and mine:
            loop.cancel(mine[-1]["id"], at=now)  # perhaps too late for the training
            mine[-1]["cancelled"] = True
        elif what < 0.1:
            arm = "abc"[rng.integers(3)]
            (loop.pause_arm if arm in offered else loop.resume_arm)(arm)
            offered ^= {arm}
        elif what < 0.12:
            loop.close()
            loop = opened(path, clock="events")
        if not offered:
            continue
        found = loop.decide({"age": float(rng.uniform(0, 100))}, key=key, at=now)
        last = mine[-1] if mine else None
        if (
            last
            and not last["cancelled"]
            and now - last["at"] < 60.0
            and last["decision"].arm in offered
        ):
            assert found == last["decision"]
        else:
            assert found.id not in {each["id"] for each in made}
            row = {"id": found.id, "key": key, "at": now, "cancelled": False, "decision": found}
            made.append(row)
    assert loop.counts["decide"] == len(made) < 200
    assert [each.id for each in loop.audits() if each.agrees] == [each["id"] for each in made]
    assert loop.log()["id"].to_list() == [each["id"] for each in made]
    loop.close()


def test_a_key_is_drawn_once_however_many_ask_at_once(path, no_wait_for_the_disk):
    with Loop(path, **NEW) as loop:
        found = []

        def ask(k):
            found.append(loop.decide({"age": k}, key="ann"))

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(16)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        calls = [("decide", {"context": AGE, "key": key}) for key in ("bob", "bob", "ann")]
        bob, again, ann = loop.submit_many(calls)
        assert {each.id for each in found} == {ann.id}
        assert bob == again
        assert loop.counts["decide"] == 2


def test_processes_that_share_a_loop_give_one_answer(postgres):
    url = postgres.url()
    with Loop(url, **NEW) as one, Loop(url) as other:
        for k in range(20):
            mine = one.decide(AGE, key=f"user {k}")
            theirs = other.decide({"age": 70}, key=f"user {k}")
            assert (mine.id, mine.arm, mine.probability) == (
                theirs.id,
                theirs.arm,
                theirs.probability,
            )


def test_a_reward_counts_for_the_decision_and_a_cancel_in_the_same_group_ends_it():
    with opened() as loop:
        first = loop.decide(AGE, key="ann", at=0)
        assert loop.decide({"age": 80}, key="ann", at=1).id == first.id
        assert loop.reward(first.id, 1, at=1) == "counted"
        assert loop.reward(loop.decide(AGE, key="ann", at=2).id, 0, at=2) == "corrected"
        asked = ("decide", {"context": AGE, "key": "ann", "at": 3})
        word, new, same = loop.submit_many([("cancel", {"id": first.id}), asked, asked])
        assert (word, new.id != first.id, same == new) == ("cancelled", True, True)


def test_a_slate_is_given_again_and_another_number_of_positions_is_not():
    with opened() as loop:
        one = loop.decide(AGE, k=2, key="ann")
        assert loop.decide({"age": 9}, k=2, key="ann") == one
        assert loop.decide(AGE, k=3, key="ann").id != one.id
        assert loop.decide(AGE, key="ann").id != one.id


def test_another_role_or_another_default_ends_it():
    with opened(mode="apprentice", exploration=0) as loop:
        one = loop.decide(AGE, key="ann", default="a")
        assert loop.decide({"age": 9}, key="ann", default="a") == one
        two = loop.decide(AGE, key="ann", default="b")
        assert (one.arm, two.arm) == ("a", "b")
        loop.configure(mode="active")
        assert loop.decide(AGE, key="ann").role == "active"
        loop.configure(mode="apprentice")  # as after a demotion: the default at once
        assert loop.decide(AGE, key="ann", default="c").arm == "c"


def test_a_fallback_is_recorded_as_it_was():
    with opened() as loop:
        loop.decide(AGE, key="ann")
        for arm in ARMS:
            assert loop.record_fallback(AGE, id=f"f {arm}", default=arm, key="ann") == "recorded"
        assert loop.counts["decide"] == 4
        assert loop.decide(AGE, key="ann").role == "active"


def test_an_erased_key_decides_anew():
    with opened() as loop:
        one = loop.decide(AGE, key="ann")
        loop.erase(key="ann")
        assert loop.decide(AGE, key="ann").id != one.id


def test_it_can_be_changed_and_ended():
    with opened(sticky=None) as loop:
        ids = {loop.decide(AGE, key="ann").id for _ in range(3)}
        assert len(ids) == 3
        loop.configure(sticky="7d")
        assert loop.settings.sticky == 7 * 86400
        assert loop.decide(AGE, key="ann").id in ids
        loop.configure(sticky=False)
        assert loop.decide(AGE, key="ann").id not in ids
        assert "sticky" not in loop.settings.to_dict()


def test_what_cannot_be_is_refused_before_anything_is_stored(tmp_path):
    for wrong, said in [
        ({"sticky": "soon"}, "sticky must be a number of seconds"),
        ({"sticky": True}, "such as '7d', or False"),
        ({"sticky": 0}, "such as '7d', or False"),
        ({"sticky": "7d", "retention": "1d"}, "at most retention, 86400 s"),
        ({"sticky": "7d", "budget": Budget("cost", mean=1)}, "leave out sticky or budget"),
    ]:
        with pytest.raises(ValueError, match=said):
            opened(tmp_path / "a.db", **wrong)
        with opened(tmp_path / f"{said}.db", sticky=None) as loop:
            assert loop.settings.sticky is None
    with opened() as loop, pytest.raises(ValueError, match="pass key="):
        loop.decide(AGE)

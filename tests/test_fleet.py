"""Fleets: many learners that are each a lone Bandit, in memory, on disk and in files."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit import (
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    MASTER,
    Bandit,
    Circle,
    DLinUCB,
    Fleet,
    Gaussian,
    Poisson,
    Problem,
    SignFlip,
    SWLinUCB,
    Uniform,
)
from driftbandit.core.layout import views
from driftbandit.fleet.directory import Directory
from driftbandit.fleet.disk import Disk
from driftbandit.fleet.residency import Members
from driftbandit.fleet.table import FleetTable
from driftbandit.policies.base import turns

KNOWN = Problem(dim=3, radius=1.0, horizon=100, path_length=2.0, change_points=2)
POLICY = DOMD(problem=KNOWN)
POLICIES = [
    POLICY,
    DOMD.from_theory(KNOWN, scale=0.2),
    DOMD(problem=Problem(dim=3, radius=0.2)),  # mostly on the sphere: projections
    DOMD(problem=Problem(dim=3, family=Poisson(20), radius=0.5)),
    GLBOMD.from_theory(KNOWN),
    DLinUCB.from_theory(KNOWN),
    SWLinUCB.from_theory(KNOWN, window=5),
    GLOC.from_theory(KNOWN),
]
NAMES = [7, "7", b"7", -(2**63), 2**63 - 1, "", b"", "straße\x00", 0]


def stream(batches=20, size=40, keys=12, dim=3, seed=0):
    """Batches of keys, contexts and rewards, many keys more than once."""
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        x = rng.standard_normal((size, dim))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        yield rng.integers(keys, size=size), x, rng.integers(2, size=size)


def arms_of(count, seed=3, n_arms=5, dim=3):
    arms = np.random.default_rng(seed).standard_normal((count, n_arms, dim))
    return arms / np.linalg.norm(arms, axis=-1, keepdims=True)


def trained(policy=POLICY, batches=20, **options):
    fleet = Fleet(policy, **options)
    for batch in stream(batches):
        fleet.update(*batch)
    return fleet


def remembered(fleet):
    """Everything a fleet knows, as bytes by key."""
    pages = list(fleet.pages())
    return {key: record.tobytes() for keys, page in pages for key, record in zip(keys, page)}


def small(tmp_path, learners=4, **options):
    """Options of a fleet that holds so many learners in memory."""
    one = Fleet(POLICY, **options).bytes_per_learner + 17 + 64
    budget = 2048 + (learners + 1) * one
    return {"memory_budget": budget, "store": tmp_path / "fleet.db", **options}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_learner_is_a_lone_bandit_bit_for_bit(policy):
    """Also where a key comes several times in a batch: its rows are learnt in order."""
    fleet, lone = Fleet(policy), {}
    for keys, x, r in stream():
        arms = arms_of(len(keys), seed=int(keys[0]))
        chosen = fleet.choose(keys, arms)
        for b, key in enumerate(keys.tolist()):
            assert chosen[b] == lone.get(key, Bandit(policy)).choose(arms[b])
        fleet.update(keys, x, r)
        for key, context, reward in zip(keys.tolist(), x, r):
            lone.setdefault(key, Bandit(policy)).update(context, reward)
    assert set(fleet) == set(lone)
    for key, bandit in lone.items():
        for mine, its in zip(fleet[key].memory, bandit.memory):
            np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
def test_the_number_of_cores_changes_nothing(cores, monkeypatch):
    expected = trained(batches=3)
    monkeypatch.setattr("driftbandit.core.threads.CORES", cores)
    monkeypatch.setattr("driftbandit.core.threads.LEAST", 1)
    found = trained(batches=3)
    assert remembered(found) == remembered(expected)
    keys, arms = np.arange(12), arms_of(12)
    np.testing.assert_array_equal(found.choose(keys, arms), expected.choose(keys, arms))


def test_large_batches_are_spread_and_still_bit_for_bit():
    fleet, lone = Fleet(POLICY), Bandit(POLICY)
    for keys, x, r in stream(batches=3, size=3000, keys=500):
        fleet.update(keys, x, r)
        for context, reward in zip(x[keys == 3], r[keys == 3]):
            lone.update(context, reward)
    np.testing.assert_array_equal(fleet[3].curvature, lone.curvature)
    np.testing.assert_array_equal(fleet[3].theta, lone.theta)


@pytest.mark.kernel
def test_late_rewards_in_any_order_and_any_cut_into_batches():
    keys, x, r = next(stream(batches=1, size=60, keys=5))
    order = np.argsort(keys, kind="stable")  # each key's own order stays
    whole, sorted_, single = Fleet(POLICY), Fleet(POLICY), Fleet(POLICY)
    whole.update(keys, x, r)
    sorted_.update(keys[order], x[order], r[order])
    for b in range(60):
        single.update(keys[b : b + 1], x[b : b + 1], r[b : b + 1])
    assert remembered(whole) == remembered(sorted_) == remembered(single)


def test_arms_may_be_shared():
    fleet, arms = trained(), arms_of(1)[0]
    expected = fleet.choose(range(20), np.tile(arms, (20, 1, 1)))
    np.testing.assert_array_equal(fleet.choose(range(20), arms), expected)
    np.testing.assert_array_equal(fleet.choose(range(20), arms.tolist()), expected)


def test_unknown_keys_choose_like_beginners_and_are_not_created():
    fleet, arms = trained(), arms_of(1)[0]
    assert fleet.choose(["nobody"], arms) == [Bandit(POLICY).choose(arms)]
    assert "nobody" not in fleet
    assert len(fleet) == 12


def test_empty_batches_are_batches():
    fleet = trained()
    before = remembered(fleet)
    assert fleet.choose([], np.zeros((0, 4, 3))).shape == (0,)
    fleet.update([], np.zeros((0, 3)), [])
    assert remembered(fleet) == before


def test_keys_of_all_kinds_are_different_learners(tmp_path):
    fleet = Fleet(POLICY, **small(tmp_path))
    for b, name in enumerate(NAMES):
        fleet.update([name] * (b + 1), np.tile([0.5, 0.1, 0.0], (b + 1, 1)), np.ones(b + 1))
    fleet.save(tmp_path / "fleet.npz")
    for f in (fleet, Fleet.load(tmp_path / "fleet.npz")):
        assert set(f) == set(NAMES)
        assert [f[name].rounds for name in NAMES] == list(range(1, len(NAMES) + 1))
    mixed = np.array(["a", "b"]), np.array([b"a", b"b"]), np.array(["a", 1], dtype=object)
    for keys in (*mixed, ("a", 1), np.arange(2, dtype=np.uint8), [np.int32(1), np.str_("a")]):
        fleet.update(keys, np.zeros((2, 3)), [0, 1])
    assert [fleet[k].rounds for k in ("a", "b", b"a", b"b", 1)] == [4, 1, 1, 1, 4]


@pytest.mark.kernel
def test_a_view_is_a_bandit_that_writes_through():
    fleet, lone = trained(), trained()
    view = fleet[3]
    assert isinstance(view, Bandit)
    x = np.array([0.3, 0.2, 0.1])
    for _ in range(5):
        view.update(x, 1)
        lone.update([3], [x], [1])
    assert remembered(fleet) == remembered(lone)
    assert view.choose(arms_of(1)[0]) == fleet.choose([3], arms_of(1))[0]
    rounds, theta = view.rounds, view.theta.copy()
    fleet.update([3], [x], [0])
    assert view.rounds == rounds + 1
    assert (view.theta != theta).any()
    view.forget(10)
    assert np.linalg.norm(fleet[3].curvature) < np.linalg.norm(lone[3].curvature)
    assert view.predict(arms_of(1)[0], level=0.9).mean.shape == (5,)
    assert "key=3" in repr(view)
    with pytest.raises(ValueError, match="norm"):
        view.update([9, 9, 9], 1)
    with pytest.raises(ValueError, match="read-only"):
        view.theta[0] = 1.0


def test_a_view_saves_and_copies_as_a_lone_bandit(tmp_path):
    fleet = trained()
    fleet[3].save(tmp_path / "three.npz")
    twins = [Bandit.load(tmp_path / "three.npz"), copy.deepcopy(fleet[3])]
    twins.append(pickle.loads(pickle.dumps(fleet[3])))
    for twin in twins:
        assert type(twin) is Bandit
        twin.update([0.1, 0.1, 0.1], 1)
        assert twin.rounds == fleet[3].rounds + 1


def test_deleted_learners_are_gone_and_their_place_is_used_again():
    fleet = trained()
    size, view = fleet.memory_bytes, fleet[3]
    del fleet[3]
    assert 3 not in fleet
    assert len(fleet) == 11
    for gone in (lambda: fleet[3], lambda: fleet.__delitem__(3), lambda: view.theta):
        with pytest.raises(KeyError):
            gone()
    fleet.update([99], [[0.1, 0.2, 0.3]], [1])
    lone = Bandit(POLICY)
    lone.update([0.1, 0.2, 0.3], 1)
    np.testing.assert_array_equal(fleet[99].curvature, lone.curvature)
    assert fleet.memory_bytes <= size


def test_sizes_are_reported():
    fleet = trained()
    assert fleet.bytes_per_learner == Bandit(POLICY).memory_bytes == 8 * (4 + 3 + 9)
    assert 12 * fleet.bytes_per_learner < fleet.memory_bytes < 50 * fleet.bytes_per_learner
    assert "learners=12" in repr(fleet)


@given(
    st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(-60, 60), st.integers(0, 60))),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_the_index_is_a_dict(steps):
    """Adding and removing keys with many collisions: multiples of 2^shift."""
    index, truth = Directory(), {}
    for step, (what, number, shift) in enumerate(steps, start=1):
        key = (number << shift) % 2**63
        if what < 0 and key in truth:
            index.remove([key])
            del truth[key]
        elif key not in truth:
            index.add(np.array([key]), np.array([step]))
            truth[key] = step
        probe = np.array([*truth, 12345])
        rows, unknown = index.find(probe)
        assert rows.tolist() == [truth.get(k, 0) for k in probe.tolist()]
        assert unknown == (12345 not in truth)
    assert dict(zip(*map(list, index.items()))) == truth


def test_turns_keep_the_order_of_every_row():
    rows = np.array([3, 1, 3, 3, 1, 2])
    assert [turn.tolist() for turn in turns(rows)] == [[0, 1, 5], [2, 4], [3]]
    assert turns(rows[:0]) == []


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}], ids=["float64", "float32"])
@pytest.mark.parametrize("learners", [1, 4, 11])
def test_eviction_changes_nothing(tmp_path, learners, options):
    """Batches of 40 rows over 12 keys, more than fit: bit for bit the fleet without a budget."""
    limits, free = small(tmp_path, learners, **options), Fleet(POLICY, **options)
    tight = Fleet(POLICY, **limits)
    for keys, x, r in stream():
        tight.update(keys, x, r)
        free.update(keys, x, r)
        arms = arms_of(40)
        np.testing.assert_array_equal(tight.choose(keys, arms), free.choose(keys, arms))
        assert tight.memory_bytes <= limits["memory_budget"]
    assert len(tight) == len(free) == 12
    assert remembered(tight) == remembered(free)
    del tight[3], tight[11]
    assert 3 not in tight
    assert sorted(tight) == [0, 1, 2, *range(4, 11)]


def test_the_least_recently_used_leave(tmp_path):
    fleet = Fleet(POLICY, **small(tmp_path, learners=4))
    x = np.array([[0.1, 0.2, 0.3]])
    for key in (1, 2, 3, 4):
        fleet.update([key], x, [1])
    fleet.choose([1], x)  # a choice is a use
    fleet.update([5], x, [1])
    in_memory, _ = next(fleet.pages())
    assert sorted(in_memory) == [1, 3, 4, 5]


def test_a_store_is_continued_after_close(tmp_path):
    limits, free = small(tmp_path), Fleet(POLICY)
    for batch in stream():
        fleet = Fleet(POLICY, **limits)
        fleet.update(*batch)
        free.update(*batch)
        fleet.close()
    fleet = Fleet(POLICY, **limits)
    assert remembered(fleet) == remembered(free)
    fleet.close()
    assert list(tmp_path.iterdir()) == [tmp_path / "fleet.db"]


def test_a_store_of_others_is_refused(tmp_path):
    limits = small(tmp_path)
    first = Fleet(POLICY, **limits)
    with pytest.raises(ValueError, match="another fleet"):
        Fleet(POLICY, **limits)
    first.close()
    for other in ((DOMD(problem=KNOWN, half_life=9), {}), (POLICY, {"dtype": "float32"})):
        with pytest.raises(ValueError, match="another recipe"):
            Fleet(other[0], **limits, **other[1])
    (tmp_path / "text.db").write_text("no database, but long enough to be taken for one" * 99)
    with pytest.raises(ValueError, match="no fleet's"):
        Fleet(POLICY, **limits | {"store": tmp_path / "text.db"})
    with pytest.raises(ValueError, match="folder"):
        Fleet(POLICY, **limits | {"store": tmp_path / "nowhere" / "fleet.db"})


def test_a_full_disk_loses_no_learner(tmp_path, monkeypatch):
    fleet = Fleet(POLICY, **small(tmp_path))
    fleet.update([1, 2, 3, 4], np.zeros((4, 3)), np.ones(4))
    before, full = remembered(fleet), OSError("database or disk is full")

    def fail(*_):
        raise full

    monkeypatch.setattr(Disk, "write", fail)
    with pytest.raises(OSError, match="full"):
        fleet.update([5], np.zeros((1, 3)), [1])
    assert remembered(fleet) == before
    monkeypatch.undo()
    fleet.update([5], np.zeros((1, 3)), [1])
    assert len(fleet) == 5


SAVED = [{}, {"dtype": "float32"}]


@pytest.mark.parametrize("options", SAVED, ids=["float64", "float32"])
def test_a_saved_fleet_continues_bit_for_bit(tmp_path, options):
    fleet = Fleet(POLICY, **small(tmp_path, **options))
    batches = list(stream())
    for batch in batches[:10]:
        fleet.update(*batch)
    fleet.save(tmp_path / "fleet.npz")
    limits = small(tmp_path, **options) | {"store": tmp_path / "other.db"}
    limits.pop("dtype", None)
    twins = [Fleet.load(tmp_path / "fleet.npz"), Fleet.load(tmp_path / "fleet.npz", **limits)]
    for batch in batches[10:]:
        for f in (fleet, *twins):
            f.update(*batch)
    for twin in twins:
        assert remembered(twin) == remembered(fleet)
        assert (twin.policy, twin.dtype) == (fleet.policy, fleet.dtype)
    with np.load(tmp_path / "fleet.npz", allow_pickle=False) as archive:
        assert {"header", "rows.1", "keys.1", "pages"} <= set(archive.files)


def test_a_file_of_many_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.fleet.residency.PAGE", 5)
    fleet = trained(**small(tmp_path))
    fleet.save(tmp_path / "fleet.npz")
    assert remembered(Fleet.load(tmp_path / "fleet.npz")) == remembered(fleet)


def test_noise_comes_from_the_fleets_own_seed(tmp_path):
    policy = DOMD(problem=KNOWN, exploration="thompson")
    fleet, same, other = (trained(policy, seed=seed) for seed in (1, 1, 2))
    keys, arms = np.repeat(np.arange(12), 20), arms_of(1)[0]
    fleet.save(tmp_path / "fleet.npz")
    first = fleet.choose(keys, arms)
    np.testing.assert_array_equal(first, same.choose(keys, arms))
    np.testing.assert_array_equal(first, Fleet.load(tmp_path / "fleet.npz").choose(keys, arms))
    assert (first != other.choose(keys, arms)).any()
    assert (first != fleet.choose(keys, arms)).any()
    assert fleet[3].choose(arms) in range(5)
    uniform = Fleet(Uniform(problem=KNOWN))
    assert set(uniform.choose([1] * 100, arms).tolist()) == set(range(5))


def test_files_of_other_things_are_refused(tmp_path):
    Bandit(POLICY).save(tmp_path / "bandit.npz")
    trained().save(tmp_path / "fleet.npz")
    with pytest.raises(ValueError, match="bandit, not a driftbandit fleet"):
        Fleet.load(tmp_path / "bandit.npz")
    with pytest.raises(ValueError, match="fleet, not a driftbandit bandit"):
        Bandit.load(tmp_path / "fleet.npz")
    whole = (tmp_path / "fleet.npz").read_bytes()
    for cut in (0, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="damaged"):
            Fleet.load(tmp_path / "cut.npz")
    with pytest.raises(FileNotFoundError):
        Fleet.load(tmp_path / "none.npz")
    trained(**small(tmp_path)).close()
    with pytest.raises(ValueError, match="holds learners already"):
        Fleet.load(tmp_path / "fleet.npz", **small(tmp_path))


def test_memories_that_no_fleet_can_have_are_refused(tmp_path):
    trained().save(tmp_path / "fleet.npz")
    with np.load(tmp_path / "fleet.npz") as archive:
        columns = dict(archive)
    rows, ends = columns["rows.1"], columns["ends.1"]
    odd = [rows[:5], rows.astype("f4"), rows[:, :-1]]
    for field, value in (("t", -1.0), ("t", 0.5), ("t", 1e300), ("t", np.nan), ("H", 0.01)):
        odd.append(rows.copy())
        views(odd[-1], POLICY.fields)[field][:] *= value
    for bad in ({"rows.1": found} for found in odd):
        np.savez(tmp_path / "bad.npz", **(columns | bad))
        with pytest.raises(ValueError, match="damaged"):
            Fleet.load(tmp_path / "bad.npz")
    twice = {"keys.1": np.zeros_like(columns["keys.1"]), "ends.1": ends}
    np.savez(tmp_path / "bad.npz", **(columns | twice))
    with pytest.raises(ValueError, match="twice"):
        Fleet.load(tmp_path / "bad.npz")


X, R = np.full((2, 3), 0.1), np.ones(2)
BAD_UPDATES = [
    ([1], X, R, "shape"),
    ([1, 2, 3], X, R, "shape"),
    ("ab", X, R, "sequence"),
    (5, X, R, "sequence"),
    ([1, 2.5], X, R, "key is"),
    ([1, None], X, R, "key is"),
    ([1, True], X, R, "key is"),
    ([1, (2, 3)], X, R, "key is"),
    ([1, 2**63], X, R, "longer"),
    ([1, "\ud800"], X, R, "Unicode"),
    (np.array([[1, 2]]), X, R, "shape"),
    (np.array([1.0, 2.0]), X, R, "key is"),
    ([1, 2], X[:, :2], R, "shape"),
    ([1, 2], [*X.tolist(), [1]], R, "shape"),
    ([1, 2], [["a"] * 3] * 2, R, "real numbers"),
    ([1, 2], X, R[:1], "shape"),
    ([1, 2], X, [1, None], "real numbers"),
    ([1, 77], [X[0], X[0] * 99], R, "key 77.*norm"),
    ([1, 77], [X[0], [0.1, np.nan, 0.1]], R, "key 77.*NaN"),
    ([1, "new"], X, [1, 0.5], "key 'new'.*reward"),
    ([1, "new"], X, [1, np.nan], "key 'new'.*reward"),
]
BAD_CHOICES = [
    ([1, 2], np.zeros((3, 5, 3)), "shape"),
    ([1, 2], np.zeros((2, 5, 4)), "shape"),
    ([1, 2], np.zeros((2, 0, 3)), "at least one"),
    ([1, 2], np.zeros(3), "shape"),
    ([1, 2], None, "real numbers"),
    ([1, 2], [[0.1, np.inf, 0.1]], "key 1.*infinity"),
    ([1, 2], [np.zeros((2, 3)), np.full((2, 3), 3.0)], "key 2.*norm"),
]


@pytest.mark.parametrize("policy", [POLICY, DLinUCB.from_theory(KNOWN)], ids=["domd", "plain"])
def test_bad_input_changes_nothing(policy):
    fleet = trained(policy)
    before = remembered(fleet)
    for *batch, hint in BAD_UPDATES:
        with pytest.raises(ValueError, match=hint):
            fleet.update(*batch)
    for *batch, hint in BAD_CHOICES:
        with pytest.raises(ValueError, match=hint):
            fleet.choose(*batch)
    assert None not in fleet
    with pytest.raises(ValueError, match="key is"):
        fleet[2.5]
    with pytest.raises(KeyError):
        fleet["new"]
    assert remembered(fleet) == before


@pytest.mark.parametrize(
    ("policy", "options", "hint"),
    [
        ("DOMD", {}, "policy must be"),
        (GLMUCB.from_theory(KNOWN), {}, "grows with time"),
        (MASTER.from_theory(KNOWN), {}, "grows with time"),
        (POLICY, {"dtype": "float16"}, "dtype must be"),
        (POLICY, {"seed": -1}, "seed"),
        (POLICY, {"memory_budget": 10**6}, "belong together"),
        (POLICY, {"store": "fleet.db"}, "belong together"),
        (POLICY, {"store": 5, "memory_budget": 10**6}, "belong together"),
        (POLICY, {"store": "fleet.db", "memory_budget": 100}, "memory_budget"),
        (GLBOMD(problem=KNOWN), {"dtype": "float32"}, "float64, or forget faster"),
        (DOMD(problem=KNOWN, half_life=10**5), {"dtype": "float32"}, "float64, or forget faster"),
        (DLinUCB.from_theory(KNOWN), {"dtype": "float32"}, "not known to be safe"),
    ],
)
def test_fleets_that_cannot_be_are_refused(policy, options, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=hint):
        Fleet(policy, **options)
    assert not list(tmp_path.iterdir())


def test_threads_may_share_a_fleet(tmp_path):
    """No update is lost, with eviction going on, while another fleet works at the same time."""
    fleets = Fleet(POLICY, **small(tmp_path)), Fleet(POLICY)
    batches = list(stream(batches=10, size=300))

    def work(fleet):
        for keys, x, r in batches:
            fleet.update(keys, x, r)
            fleet.choose(keys, x)

    threads = [threading.Thread(target=work, args=(fleet,)) for fleet in fleets * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fleet in fleets:
        assert sum(fleet[key].rounds for key in fleet) == 3 * 10 * 300


def _trained_in_child(queue):
    queue.put(remembered(trained()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fleet_works_after_a_fork(monkeypatch):
    monkeypatch.setattr("driftbandit.core.threads.CORES", 2)
    monkeypatch.setattr("driftbandit.core.threads.LEAST", 1)
    expected = remembered(trained())  # the threads exist now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_trained_in_child, args=(queue,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    assert queue.get(timeout=60) == expected
    child.join()


KILLED = """
import sys, numpy as np
from driftbandit import DOMD, Fleet, Problem
fleet = Fleet(DOMD(problem=Problem(dim=3)), memory_budget=200_000, store="fleet.db")
rng = np.random.default_rng(0)
while True:
    fleet.update(rng.integers(5000, size=500), np.full((500, 3), 0.1), rng.integers(2, size=500))
    fleet.save("fleet.npz")
    print("saved", flush=True)
"""


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.55])
def test_a_killed_process_leaves_whole_files(tmp_path, delay):
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        for _ in range(3):
            process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    policy = DOMD(problem=Problem(dim=3))
    saved = Fleet.load(tmp_path / "fleet.npz")  # checks every memory
    assert len(saved) > 500
    store = Fleet(policy, memory_budget=10**7, store=tmp_path / "fleet.db")
    assert len(store) > 100
    for key in list(store)[:200]:
        assert policy.sane(store[key].memory)


@pytest.mark.parametrize("kind", ["one arm", "many arms", "one arm, always lucky"])
def test_single_precision_keeps_the_floor_through_a_million_rounds(kind):
    """H >= lambda I, at most a tenth of lambda on top, symmetric, ||theta|| <= S."""
    policy, n = DOMD(problem=Problem(dim=5, radius=1.0), discount=0.999), 10**6
    fleet, rng = Fleet(policy, dtype="float32"), np.random.default_rng(0)
    x = rng.standard_normal((n if kind == "many arms" else 1, 5))
    x = np.broadcast_to(x / np.linalg.norm(x, axis=1, keepdims=True), (n, 5))
    r = rng.random(n) < (1.0 if "lucky" in kind else 0.7)
    fleet.update(np.zeros(n, dtype=np.int64), x, r)
    H, theta = fleet[0].curvature, fleet[0].theta
    w = np.linalg.eigvalsh(H)
    np.testing.assert_array_equal(H, H.T)
    assert w[0] >= 1.0 - 1e-12
    assert np.linalg.norm(theta) <= 1.0
    assert fleet[0].rounds == n
    if kind != "many arms":
        assert 1.0 <= w[0] <= w[3] <= 1.1
    np.testing.assert_array_equal(H.astype(np.float32), H)


def regret(world, policy, dtype, seeds=24):
    """Regret of every seed, played by a fleet with a key per seed."""
    fleet, keys, total = Fleet(policy, dtype=dtype), np.arange(seeds), np.zeros(seeds)
    mean = world.family.mu
    for block in world.blocks(range(seeds), 500):
        for arms, theta, luck in zip(block.arms, block.theta, block.luck):
            values = mean(np.einsum("nad,nd->na", arms, theta))
            chosen = fleet.choose(keys, arms)
            total += values.max(axis=1) - values[keys, chosen]
            x = arms[keys, chosen]
            fleet.update(keys, x, world.family.draw(np.einsum("nd,nd->n", x, theta), luck))
    return total


@pytest.mark.parametrize("radius", [1.0, 3.0])
@pytest.mark.parametrize("world", [Circle, SignFlip], ids=["drifting", "piecewise"])
@pytest.mark.parametrize("theory", [False, True], ids=["practical", "theory"])
def test_single_precision_has_the_regret_of_double_precision(world, radius, theory):
    here = world(horizon=1500, radius=radius)
    policy = DOMD.from_theory(here.problem, scale=0.2) if theory else DOMD(problem=here.problem)
    double, single = (regret(here, policy, dtype) for dtype in ("float64", "float32"))
    error = (single - double).std(ddof=1) / np.sqrt(len(double))
    assert abs((single - double).mean()) <= 3 * error + 1e-9
    assert abs((single - double).mean()) <= 0.03 * double.mean()


@pytest.mark.kernel
def test_single_precision_takes_half_the_memory():
    problem = Problem(dim=8)
    double, single = (Fleet(DOMD(problem=problem), dtype=t) for t in ("float64", "float32"))
    assert single.bytes_per_learner == 4 * (72 + 4)
    assert single.bytes_per_learner <= 0.51 * double.bytes_per_learner


def test_single_precision_is_refused_where_lambda_would_drown():
    loud = Problem(dim=3, family=Gaussian(1e-3, 5.0))  # curvature 1000 a round
    with pytest.raises(ValueError, match="raise regularization"):
        Fleet(DOMD(problem=loud), dtype="float32")
    Fleet(DOMD(problem=loud, regularization=1000.0), dtype="float32")


def test_members_without_a_store_need_no_clock():
    members = Members(FleetTable(POLICY.rows(POLICY.init(1))[0]), None)
    assert (members.find(np.arange(5)) == 0).all()
    assert members.tick == 1


# Slates, predictions, forgetting, bad rows


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_slates_and_predictions_are_those_of_lone_bandits(policy):
    fleet, keys = trained(policy), [3, 99, 7]
    arms = arms_of(3)
    slates = fleet.choose(keys, arms, k=4)
    assert slates.shape == (3, 4)
    assert np.array_equal(slates[:, 0], fleet.choose(keys, arms))
    beginner = Bandit(policy)
    for row, key in enumerate(keys):
        lone = beginner if key == 99 else fleet[key]
        assert np.array_equal(slates[row], lone.choose(arms[row], k=4))
        found, alone = fleet.predict(keys, arms), lone.predict(arms[row])
        for column, own in zip(found, alone):
            assert np.allclose(column[row], own, rtol=1e-12)
    if isinstance(policy, DOMD):
        shared, alone = (each.predict(*where, arms[0], level=0.9)
                         for each, where in ((fleet, [keys]), (fleet[7], [])))  # fmt: skip
        assert np.allclose(shared.lower[2], alone.lower, rtol=1e-12)
    assert fleet.predict([], arms[0]).mean.shape == (0, 5)
    assert len(fleet) == 12  # who only asks is not created


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_fleet_forgets_as_its_learners_do(tmp_path, dtype):
    policy = DOMD(problem=KNOWN, half_life=50)
    for some in (None, [3, 3, 7, 99]):
        fleet = trained(policy, dtype=dtype)
        before = {key: copy.copy(fleet[key]) for key in fleet}
        fleet.forget(10, some)
        assert len(fleet) == 12
        for key, lone in before.items():
            if some is None or key in some:
                lone.forget(10)
            assert np.allclose(fleet[key].curvature, lone.curvature, rtol=1e-5)
            assert np.allclose(fleet[key].theta, lone.theta, rtol=1e-5)
    small = {"memory_budget": 3_000, "store": tmp_path / "some.db"}
    away, here = trained(policy, dtype=dtype, **small), trained(policy, dtype=dtype)
    for each in (away, here):
        each.forget(25)
    assert remembered(away) == remembered(here)
    for bad in (-1, "a", None, np.nan):
        with pytest.raises(ValueError, match="steps"):
            here.forget(bad)


def test_all_bad_rows_are_named_and_the_others_can_be_learnt():
    rng = np.random.default_rng(0)
    x, r = rng.uniform(-0.5, 0.5, size=(20, 3)), rng.integers(2, size=20).astype(float)
    x[3], x[8, 1], r[8], r[15] = 9.0, np.nan, 7.0, 0.5
    for names in (np.arange(20), [f"user {k}" for k in range(20)]):
        fleet = trained()
        before = remembered(fleet)
        with pytest.raises(ValueError, match=r"3 rows.*3.*norm.*8.*NaN.*15.*reward") as error:
            fleet.update(names, x, r)
        assert error.value.rows == [3, 8, 15]
        assert pickle.loads(pickle.dumps(error.value)).rows == [3, 8, 15]
        assert remembered(fleet) == before
        assert fleet.update(names, x, r, bad="skip") == [3, 8, 15]
        good = [k for k in range(20) if k not in (3, 8, 15)]
        twin = trained()
        twin.update([names[k] for k in good], x[good], r[good])
        assert remembered(fleet) == remembered(twin)
        assert fleet.update(names, x[:1].repeat(20, 0), np.ones(20), bad="skip") == []
    x[:] = 9.0
    with pytest.raises(ValueError, match=r"20 rows.*and those of keys 'user 5'.*'user 19'"):
        fleet.update(names, x, r)
    arms = arms_of(20)
    arms[4, 2], arms[11, 0] = 9.0, np.inf
    for call in (fleet.choose, fleet.predict):
        with pytest.raises(ValueError, match=r"2 rows.*user 4.*norm.*user 11.*infinity"):
            call(names, arms)
    with pytest.raises(ValueError, match="bad must be"):
        fleet.update(names, x, r, bad="ignore")
    for k in (0, 6, "2"):
        with pytest.raises(ValueError, match="k must"):
            fleet.choose([1], arms_of(1), k=k)

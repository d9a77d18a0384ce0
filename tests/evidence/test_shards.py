"""Ledgers of keyed loops, replayed in shards: all together they are one process, bit for bit."""

from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from driftbandit import DOMD, Category, Features, Log, Loop, Number, Reward, Vector
from driftbandit.evidence import cluster as tasks
from driftbandit.evidence.reading.ledger import Where
from prices import ARMS, FEATURES

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

REWARD = Reward(0, 1, wait=100, missing=0)
KEYED = {
    "features": FEATURES,
    "reward": REWARD,
    "key": "user",
    "clock": "events",
    "exploration": 0.3,
}


def play(loop, n=60, seed=0, start=0.0, users=9):
    """Slates, cancelled decisions, keys that begin without an arm, rewards that never come."""
    rng = np.random.default_rng(seed)
    for t in start + 10.0 * np.arange(n):
        user, context = f"ü {rng.integers(users)}", {"age": int(rng.integers(18, 90))}
        if rng.random() < 0.2:
            loop.decide(context, {}, default="none", at=t, key=f"{user} {t // 200:g}")
            continue
        k = 2 if rng.random() < 0.3 else None
        made = loop.decide(context, ARMS, at=t, key=user, k=k)
        if rng.random() < 0.7:
            loop.reward(made.id, float(rng.random() < 0.5), at=t + 5, position=k and 1)
        elif rng.random() < 0.2:
            loop.cancel(made.id, at=t + 5)
    loop.close_windows(start + 10.0 * n + 150.0)


def shop(path, **options):
    """A keyed loop whose features grew in the middle; new keys come at the end, too."""
    with Loop(path, **KEYED, training="inline", **options) as loop:
        play(loop)
        loop.add_features(context={"mobile": Category(["yes", "no"])})
        play(loop, 30, seed=1, start=900.0, users=15)
        return loop.digest


class Here:
    """A cluster that does at once what it is asked."""

    def __init__(self, workers):
        self.workers, self.tasks = workers, []

    def scheduler_info(self):
        return {"workers": dict.fromkeys(range(self.workers))}

    def submit(self, task, *args, pure):
        self.tasks.append(task.__name__)
        return task(*args)

    def gather(self, futures):
        return futures


@pytest.fixture
def cluster(monkeypatch):
    """`spread` with a cluster in this process, of this size and length of stretches."""

    def run(path, workers, stretch, count=None, **where):
        here = Here(workers)
        monkeypatch.setattr(tasks, "STRETCH", stretch)
        monkeypatch.setattr(tasks, "connected", lambda *_: nullcontext((here, None)))
        monkeypatch.setattr(tasks, "AHEAD", 1_000)  # nothing is a future here
        return tasks.spread(Where(str(path), "loop", **where), "here", count), here

    return run


@pytest.mark.parametrize("half_life", [None, "10min"])
def test_shards_and_stretches_of_any_size_are_one_process(half_life, tmp_path, cluster):
    digest = shop(tmp_path / "shop.db", half_life=half_life)
    for workers, stretch in ((1, 7), (2, 10_000), (5, 20)) if half_life is None else ((3, 30),):
        learner, here = cluster(tmp_path / "shop.db", workers, stretch)
        assert learner.digest == digest, (workers, stretch)
        assert here.tasks.count("trained") == workers * here.tasks.count("populated")
    one = Log.read(tmp_path / "shop.db").replay()
    assert one.digest == digest
    assert set(one.keys) == set(learner.bandits)
    assert all(np.array_equal(one.keys[k].theta, learner.bandits[k].theta) for k in one.keys)
    learner.learn(next(iter_examples(tmp_path / "shop.db")), np.zeros(one.bandit.theta.size))
    assert learner.digest != digest  # it would notice one example too many


def iter_examples(path):
    with Where(str(path), "loop").opened() as (ledger, known):
        yield from tasks.unfold(ledger, known, None)[1]


def test_another_policy_and_a_ledger_whose_beginning_is_gone(tmp_path, cluster):
    shop(tmp_path / "shop.db")
    policy = DOMD(problem=FEATURES.problem(REWARD), half_life=20)
    other = Log.read(tmp_path / "shop.db").replay(policy)
    learner, _ = cluster(tmp_path / "shop.db", 3, 20, policy=policy)
    assert learner.digest == other.digest
    with Loop(tmp_path / "shop.db", training="inline") as loop:
        loop.erase(key="ü 3")
        play(loop, 30, seed=2, start=3000.0)
        digest = loop.digest
    learner, _ = cluster(tmp_path / "shop.db", 3, 20)
    assert learner.digest == digest
    with pytest.raises(ValueError, match="the beginning of this ledger is gone"):
        cluster(tmp_path / "shop.db", 3, 20, policy=policy)


def test_a_loop_that_has_learnt_nothing(tmp_path, cluster):
    with Loop(tmp_path / "shop.db", **KEYED) as loop:
        digest = loop.digest
    assert cluster(tmp_path / "shop.db", 2, 20)[0].digest == digest


@pytest.fixture(scope="module")
def dask():
    """The address of a real cluster."""
    from distributed import LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as cluster:
        yield cluster.scheduler_address


def test_a_dask_cluster_gives_the_bits_of_one_process(tmp_path, dask, monkeypatch):
    digest = shop(tmp_path / "shop.db")
    monkeypatch.setattr(tasks, "STRETCH", 25)
    log = Log.read(tmp_path / "shop.db")
    found = log.replay(scheduler=dask)
    assert (found.digest, len(found.keys)) == (digest, len(log.replay().keys))
    assert log.replay(scheduler=dask, workers=5).digest == digest


def test_postgresql_is_read_by_all_workers(postgres, dask, driftbandit):
    url = postgres.url()
    with Loop(url, **KEYED, training="inline") as loop:
        play(loop, 40)
        log = Log.read(url)
        assert log.replay(scheduler=dask).digest == log.replay().digest == loop.digest
        code, told, _ = driftbandit("replay", url, "--scheduler", dask)
        assert (code, loop.digest in told) == (0, True)


def test_a_worker_that_cannot_open_the_ledger_says_so(tmp_path, dask, monkeypatch):
    shop(tmp_path / "shop.db")
    stretches = tasks.stretches

    def moved(changes):
        found = list(stretches(changes))
        (tmp_path / "shop.db").rename(tmp_path / "elsewhere.db")
        return found

    monkeypatch.setattr(tasks, "stretches", moved)
    with pytest.raises(ValueError, match=r"shop.db' is not a file: check the path"):
        Log.read(tmp_path / "shop.db").replay(scheduler=dask)


def test_what_cannot_be_spread_is_refused(tmp_path):
    with Loop(tmp_path / "one.db", features=FEATURES, reward=REWARD):
        log = Log.read(tmp_path / "one.db")
    with pytest.raises(ValueError, match="only a loop with key= can be spread"):
        log.replay(scheduler="local")
    with pytest.raises(ValueError, match="pass scheduler='local'"):
        log.replay(workers=2)
    with pytest.raises(ValueError, match="for another one pass policy="):
        log.replay(half_life="1h")
    file = Log.read(log_file(tmp_path))
    with pytest.raises(ValueError, match="only the ledger of a loop with key="):
        file.replay(DOMD, scheduler="local")


def log_file(folder):
    rows = {"action": ["a", "b"], "probability": [0.5, 0.5], "reward": [0.0, 1.0]}
    pl.DataFrame(rows | {"arms": ['["a", "b"]'] * 2}).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def test_examples_of_older_features_are_padded(tmp_path, cluster):
    """Decided before the features grew, trained after: one length of rows, so one rounding. Rows
    are dense, since a sum of few numbers is seldom rounded otherwise if zeros are appended."""
    tastes = np.random.default_rng(0).standard_normal((60, 5)).tolist()
    features = Features(context={"taste": Vector(5)}, arm={"price": Number(0, 100)})
    with Loop(tmp_path / "l.db", **(KEYED | {"features": features}), training="inline") as loop:
        for k, taste in enumerate(tastes):
            loop.decide({"taste": taste}, ARMS, key=f"{k % 3}", at=float(k), id=f"d{k}")
        loop.add_features(context={"mobile": Category(["yes", "no"])})
        for k in range(len(tastes)):
            loop.reward(f"d{k}", float(k % 4 > 0), at=70.0)
        loop.close_windows(200.0)
        digest = loop.digest
    assert Log.read(tmp_path / "l.db").replay().digest == digest
    assert cluster(tmp_path / "l.db", 2, 6)[0].digest == digest

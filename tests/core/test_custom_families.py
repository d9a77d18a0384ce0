"""Families of one's own: the same learners as with ours, and errors where they fail."""

import math
import pickle
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from driftbandit import (
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    AutoDOMD,
    Bandit,
    Bernoulli,
    Binomial,
    Circle,
    Family,
    Fleet,
    Gaussian,
    Poisson,
    Problem,
    simulate,
)
from driftbandit.checks import check_family, family_checks
from driftbandit.families import CUSTOM


@dataclass(frozen=True)
class Twin(Family):
    """Bernoulli, written as a user would."""

    @property
    def R(self):
        return 1.0

    def m(self, z):
        return np.logaddexp(0.0, z)

    def mu(self, z):
        return 0.5 + 0.5 * np.tanh(0.5 * np.asarray(z))

    def dmu(self, z):
        return 0.25 * (1.0 - np.tanh(0.5 * np.asarray(z)) ** 2)

    def draw(self, z, u):
        return (np.asarray(u) > 1 - self.mu(z)).astype(float)


@njit
def _m(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@njit
def _mu(z):
    return 0.5 + 0.5 * math.tanh(0.5 * z)


@njit
def _dmu(z):
    return 0.25 * (1.0 - math.tanh(0.5 * z) ** 2)


@dataclass(frozen=True)
class CompiledTwin(Twin):
    def compiled(self):
        return _m, _mu, _dmu


@dataclass(frozen=True)
class Moody(Twin):
    """Fails beyond some z: raises, or gives something that is no number."""

    mood: str = "raise"
    beyond: float = 0.4

    def mu(self, z):
        far = np.abs(z) > self.beyond
        if not np.any(far):
            return super().mu(z)
        if self.mood == "raise":
            raise ZeroDivisionError("a bad day")
        if self.mood == "interrupt":
            raise KeyboardInterrupt
        return np.where(far, float(self.mood), super().mu(z))


def known(family, dim=3):
    return Problem(
        dim=dim, family=family, radius=1.0, horizon=200, path_length=3.0, change_points=2
    )


def stream(rounds, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((rounds, 8, dim))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    return arms, rng.integers(0, 2, rounds).astype(float)


def played(bandit, rounds=120):
    arms, rewards = stream(rounds)
    choices = []
    for X, r in zip(arms, rewards):
        choices.append(bandit.choose(X))
        bandit.update(X[choices[-1]], r)
    return choices


def failing(call, watch):
    """Calls until one fails: its error, and what `watch` saw before."""
    for k in range(200):
        before = watch()
        try:
            call(k)
        except BaseException as error:
            return error, before
    return pytest.fail("nothing failed")


POLICIES = [
    lambda p: DOMD(problem=p),
    lambda p: DOMD.from_theory(p),
    lambda p: AutoDOMD(problem=p),
    lambda p: GLBOMD.from_theory(p, scale=0.2),
    lambda p: GLMUCB.from_theory(p, scale=0.2),
    lambda p: GLOC.from_theory(p, scale=0.2),
]


@pytest.mark.kernel
@pytest.mark.parametrize("family", [Twin(), CompiledTwin()], ids=repr)
@pytest.mark.parametrize("make", POLICIES)
def test_a_copy_of_bernoulli_is_bernoulli(make, family):
    """Also its k_mu and c_mu, which are numerical: radii differ by less than 0.2 %."""
    ours, theirs = Bandit(make(known(Bernoulli()))), Bandit(make(known(family)))
    if ours.policy.name in ("DOMD-GLB", "AutoDOMD") and getattr(ours.policy, "delta", None) is None:
        assert played(ours) == played(theirs)
        np.testing.assert_allclose(theirs.theta, ours.theta, rtol=1e-9, atol=1e-12)
        return
    found = np.mean(np.equal(played(ours), played(theirs)))
    assert found > 0.9
    np.testing.assert_allclose(theirs.theta, ours.theta, atol=0.02)


@pytest.mark.kernel
def test_with_its_own_bounds_also_rivals_choose_the_same():
    @dataclass(frozen=True)
    class Exact(Twin):
        k_mu, c_mu, d2mu = Bernoulli.k_mu, Bernoulli.c_mu, Bernoulli.d2mu

    for make in POLICIES:
        ours, theirs = Bandit(make(known(Bernoulli()))), Bandit(make(known(Exact())))
        assert played(ours) == played(theirs), ours.policy.name
        np.testing.assert_allclose(theirs.theta, ours.theta, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", [Twin(), CompiledTwin()], ids=repr)
def test_a_fleet_learns_the_same_on_all_cores(family, dtype):
    keys, rng = np.arange(700), np.random.default_rng(1)
    x = rng.standard_normal((700, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    fleets = [Fleet(DOMD(problem=known(f)), dtype=dtype) for f in (Bernoulli(), family)]
    for _ in range(5):
        rewards = rng.integers(0, 2, 700).astype(float)
        for fleet in fleets:
            fleet.update(keys, x, rewards)
    ours, theirs = (np.array([fleet[k].theta for k in range(0, 700, 50)]) for fleet in fleets)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("kind", [DOMD, AutoDOMD])
def test_a_saved_bandit_goes_on_bit_for_bit(kind, tmp_path):
    bandit = Bandit(kind(problem=known(Twin())))
    played(bandit, 40)
    bandit.save(tmp_path / "own.npz")
    for twin in (Bandit.load(tmp_path / "own.npz"), pickle.loads(pickle.dumps(bandit))):
        assert twin.policy == bandit.policy
        same = Bandit.load(tmp_path / "own.npz")
        assert played(twin, 40) == played(same, 40)
        np.testing.assert_array_equal(twin.theta, same.theta)


def test_worlds_draw_from_it():
    ours, theirs = (Circle(horizon=80, family=f) for f in (Bernoulli(), Twin()))
    runs = [simulate(AutoDOMD(problem=w.problem), w, (0, 1)) for w in (ours, theirs)]
    np.testing.assert_array_equal(runs[0].choices, runs[1].choices)
    np.testing.assert_allclose(runs[0].regret, runs[1].regret, atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("mood", ["raise", "nan", "inf"])
@pytest.mark.parametrize("make", POLICIES)
def test_a_family_that_fails_is_named_and_nothing_is_learnt(make, mood):
    bandit, arms = Bandit(make(known(Moody(mood=mood, beyond=0.05)))), stream(200)[0]
    error, before = failing(lambda k: bandit.update(arms[k, 0], 1.0), lambda: bandit.memory)
    for was, now in zip(before, bandit.memory):
        np.testing.assert_array_equal(now, was)
    assert isinstance(error, (ValueError, ZeroDivisionError))
    assert re.search(r"mu\(-?0\.\d+\) of .*Moody|a bad day", str(error))
    if isinstance(error, ValueError) and mood == "raise":
        assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_compiled_function_that_fails_is_an_error_too():
    @njit
    def bad(z):
        if z > 0.1:
            raise ValueError("beyond")
        return 0.25

    @dataclass(frozen=True)
    class Broken(Twin):
        def compiled(self):
            return _m, _mu, bad

    bandit = Bandit(DOMD(problem=known(Broken())))
    error, before = failing(lambda k: bandit.update([1.0, 0.0, 0.0], 1), bandit.theta.copy)
    assert isinstance(error, ValueError)
    assert re.search(r"m, mu or dmu of .*Broken\(\) is no number, so it was not learnt", str(error))
    np.testing.assert_array_equal(bandit.theta, before)


def test_compiled_functions_must_be_compiled():
    @dataclass(frozen=True)
    class Plain(Twin):
        def compiled(self):
            return print, open, open

    with pytest.raises(ValueError, match=r"compiled\(\) of .*Plain\(\).* numba's njit"):
        Bandit(DOMD(problem=known(Plain())))


def test_a_failing_batch_trains_nobody():
    fleet, n = Fleet(DOMD(problem=known(Moody(beyond=0.3)))), 600
    x, keys = np.tile([0.1, 0.0, 0.0], (n, 1)), np.arange(n)
    fleet.update(keys, x, np.ones(n))
    x[-1, 0] = 1.0  # the last learner is the first to get so far
    error, before = failing(
        lambda k: fleet.update(keys, x, np.ones(n)),
        lambda: [fleet[k].theta.copy() for k in (0, 300, n - 1)],
    )
    assert isinstance(error, ValueError)
    assert re.search(r"mu\(0\.\d+\) of .*Moody.* a bad day", str(error))
    np.testing.assert_array_equal([fleet[k].theta for k in (0, 300, n - 1)], before)


def test_an_interrupt_in_a_family_is_an_interrupt():
    bandit = Bandit(AutoDOMD(problem=known(Moody(mood="interrupt", beyond=0.1))))
    error, before = failing(lambda k: bandit.update([1.0, 0.0, 0.0], 1), bandit.theta.copy)
    assert type(error) is KeyboardInterrupt
    np.testing.assert_array_equal(bandit.theta, before)


def test_threads_take_turns():
    """Python may switch threads inside a family; no update is lost or torn."""
    bandit, arms = Bandit(DOMD(problem=known(Twin()))), stream(1)[0][0]
    before, interval = sys.getswitchinterval(), 1e-6

    def work():
        for _ in range(200):
            bandit.update(arms[bandit.choose(arms)], 1.0)

    threads = [threading.Thread(target=work) for _ in range(3)]
    sys.setswitchinterval(interval)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert bandit.rounds == 600
    assert bandit.policy.sane(bandit.memory)


def test_whoever_changes_a_link_leaves_the_compiled_ones():
    """Kernels must not run a subclass as what it was derived from."""

    @dataclass(frozen=True)
    class Steeper(Bernoulli):
        code = 0  # means nothing

        def mu(self, z):
            return super().mu(2 * np.asarray(z))

        def dmu(self, z):
            return 2 * super().dmu(2 * np.asarray(z))

    assert Steeper().link.code == CUSTOM
    assert [f.link.code for f in (Bernoulli(), Binomial(3), Gaussian(), Poisson(9))] == [0, 0, 1, 2]
    plain, steep = (Bandit(DOMD(problem=known(f))) for f in (Bernoulli(), Steeper()))
    played(plain), played(steep)
    assert np.abs(plain.theta - steep.theta).max() > 0.01


@dataclass(frozen=True)
class Bare(Family):
    R = 1.0

    def mu(self, z):
        return Bernoulli().mu(z)

    def dmu(self, z):
        return Bernoulli().dmu(z)


def test_what_is_missing_is_named():
    Bandit(DOMD(problem=known(Bare()))).update([1.0, 0.0, 0.0], 1)
    with pytest.raises(ValueError, match=r"m\(0\) of .*Bare has no m: see docs/families.md"):
        Bandit(AutoDOMD(problem=known(Bare()))).update([1.0, 0.0, 0.0], 1)
    with pytest.raises(AssertionError, match="NotImplementedError: Bare has no draw"):
        check_family(Bare())


def test_a_family_that_cannot_be_hashed_says_so():
    class Loose(Twin):
        __hash__ = None

    with pytest.raises(ValueError, match="a frozen dataclass of plain values"):
        Bandit(DOMD(problem=known(Loose())))


SCRIPT = """
import multiprocessing, os, sys
sys.path.insert(0, {folder!r})
from test_custom_families import Twin, known, played, DOMD, Bandit

def learn(_):
    bandit = Bandit(DOMD(problem=known(Twin())))
    played(bandit, 30)
    return bandit.theta.tolist()

if __name__ == "__main__":
    here = learn(0)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(learn, [0]) == [here], method
"""


def test_it_works_in_forked_and_spawned_processes(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    subprocess.run([sys.executable, script], check=True)


@pytest.mark.parametrize("check", family_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "family",
    [Bernoulli(), Binomial(5), Gaussian(0.5, 6.0), Poisson(60), Twin(), CompiledTwin()],
    ids=repr,
)
def test_good_families_pass(family, check):
    check(family, 3.0)


WRONG = {
    "mu": lambda self, z: Bernoulli().mu(1.01 * np.asarray(z)),
    "dmu": lambda self, z: 1.001 * Bernoulli().dmu(z),
    "d2mu": lambda self, z: -Bernoulli().d2mu(z),
    "k_mu": lambda self, S: 0.2,
    "c_mu": lambda self, S: 0.2,
    "draw": lambda self, z, u: (np.asarray(u) > 0.98 - self.mu(z)).astype(float),
    "self_concordance": property(lambda self: 0.5),
    "g": property(lambda self: 0.5),
    "low": property(lambda self: 0.5),
    "R": property(lambda self: 0.9),
    "compiled": lambda self: (_m, _mu, _mu),
    "contains": lambda self, r: np.isfinite(r),
    "mu_dmu": lambda self, z: (self.mu(z), self.mu(z)),
}


for _name, _method in WRONG.items():  # of this module, so that they can be pickled
    _body = {_name: _method, "__module__": __name__}
    globals()[f"Wrong_{_name}"] = dataclass(frozen=True)(type(f"Wrong_{_name}", (Twin,), _body))


@pytest.mark.parametrize("name", WRONG)
def test_the_wrong_method_is_named(name):
    wrong = globals()[f"Wrong_{name}"]
    blamed = {"low": "mu", "R": "self_concordance", "mu": "(mu|dmu)"}.get(name, name)
    with pytest.raises(AssertionError, match=rf"Wrong_{name}\.{blamed} "):
        check_family(wrong())


@dataclass(frozen=True)
class Wide(Twin):
    spread: float = 1.0
    quasi = True

    @property
    def g(self):
        return self.spread


def test_a_quasi_likelihood_may_have_too_much_dispersion_and_not_too_little():
    check_family(Wide(spread=1.3))
    with pytest.raises(AssertionError, match=r"Wide\.g is too small"):
        check_family(Wide(spread=0.8))

"""What every policy inherits, held directly: rows of many learners, turns, and the baselines."""

import numpy as np
import pytest

from driftbandit import LinUCB, Problem, Uniform
from driftbandit.policies.base import MOST, memory_bytes, turns
from driftbandit.policies.baselines import Oracle

pytestmark = pytest.mark.kernel
LINEAR = LinUCB(problem=Problem(dim=3, radius=1.0), regularization=1.0)


@pytest.mark.parametrize("seed", range(4))
def test_turns_have_every_row_once_and_in_order(seed):
    rows = np.random.default_rng(seed).integers(5, size=23)
    found = turns(rows)
    assert sorted(np.concatenate(found).tolist()) == list(range(23))
    assert len(found) == np.bincount(rows).max()
    for turn in found:
        assert len(set(rows[turn].tolist())) == len(turn) > 0
    for row in range(5):
        places = [k for turn in found for k in turn.tolist() if rows[k] == row]
        assert places == sorted(places)
    assert [turn.tolist() for turn in turns(np.array([0, 0, 1]))] == [[0, 2], [1]]


class Noisy(LinUCB):
    """Learns nothing, and remembers the noise that it was given."""

    noise_size = 1

    def update(self, memory, x, r, noise=None):
        memory.theta[:, 0] += 0.0 if noise is None else noise[:, 0]
        return memory


def test_updates_of_rows_are_those_of_learners_one_after_the_other():
    policy, rng = (
        LinUCB(problem=Problem(dim=3, radius=1.0), regularization=1.0),
        np.random.default_rng(0),
    )
    which = np.array([2, 0, 2, 2, 1, 0])
    x, r = rng.uniform(-0.5, 0.5, (6, 3)), rng.random(6)
    rows = policy.rows(policy.init(3))
    policy.update_rows(rows, which, x, r)
    for row in range(3):
        own = policy.init()
        for k in np.flatnonzero(which == row):
            own = policy.update(own, x[k : k + 1], r[k : k + 1])
        np.testing.assert_allclose(rows[row], policy.rows(own)[0], rtol=1e-12)


def test_noise_reaches_the_update_of_its_row():
    policy = Noisy(problem=Problem(dim=2, radius=1.0), regularization=1.0)
    rows, noise = policy.rows(policy.init(2)), np.array([[1.0], [20.0], [300.0]])
    policy.update_rows(rows, np.array([1, 0, 1]), np.zeros((3, 2)), np.zeros(3), noise)
    assert policy.from_rows(rows).theta[:, 0].tolist() == [20.0, 301.0]


@pytest.mark.parametrize("shared", [True, False])
def test_the_best_of_some_rows_is_the_best_of_their_learners(shared):
    policy, rng = (
        LinUCB(problem=Problem(dim=3, radius=1.0), regularization=1.0),
        np.random.default_rng(1),
    )
    memory = policy.init(4)
    for _ in range(9):
        memory = policy.update(memory, rng.uniform(-0.5, 0.5, (4, 3)), rng.random(4))
    which, arms = np.array([3, 1, 3]), rng.uniform(-0.5, 0.5, (1 if shared else 3, 6, 3))
    found = policy.best_rows(policy.rows(memory), which, arms, 2)
    for k, row in enumerate(which.tolist()):
        own = policy.from_rows(policy.rows(memory)[row : row + 1])
        np.testing.assert_array_equal(
            found[k], policy.best(own, arms[k * (not shared)][None], 2)[0]
        )


def test_uniform_plays_every_arm_and_none_beyond_the_last():
    policy = Uniform()
    assert policy.problem.dim == 1
    assert len(Uniform(problem=Problem(dim=6, items=(2, 3))).init(2).t) == 2  # items are arms to it
    assert len(policy.init().t) == 1
    noise = np.array([[-40.0], [-0.1], [0.1], [40.0]])  # ndtr(40) is 1
    arms = np.zeros((4, 6, 1))
    assert policy.choose(policy.init(4), arms, noise).tolist() == [0, 2, 3, 5]
    even = np.random.default_rng(0).standard_normal((6000, 1))
    counts = np.bincount(policy.choose(policy.init(6000), np.zeros((6000, 6, 1)), even))
    assert counts.min() > 900


def test_the_oracle_plays_what_it_was_told():
    policy = Oracle(problem=Problem(dim=2))
    memory = policy.init()
    assert memory.theta.shape == (1, 2)
    policy.reveal(memory, np.array([[0.0, 1.0]]))
    arms = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    assert policy.choose(memory, arms).tolist() == [1]


def test_wrong_memories_are_refused():
    policy = LINEAR
    good = policy.init(2)
    arms = np.zeros((2, 2, 3))
    assert policy.choose(good, arms).shape == (2,)
    with pytest.raises(ValueError, match="is no "):
        policy.choose(Uniform().init(2), arms)
    for name in good._fields:
        one = getattr(good, name)
        with pytest.raises(ValueError, match=name):
            policy.choose(good._replace(**{name: one.astype(np.float32)}), arms)
    assert memory_bytes(good) == 2 * memory_bytes(policy.init(1)) > 0


def test_memories_that_no_policy_made_are_seen():
    policy, good = Oracle(problem=Problem(dim=2)), Oracle(problem=Problem(dim=2)).init(2)
    for t in ([0, 3], [1, MOST]):
        assert policy.sane(good._replace(t=np.array(t)))
    for t in ([0, -1], [2, MOST + 1], [1.0, 0.5]):
        assert not policy.sane(good._replace(t=np.array(t)))
    for wrong in (np.nan, np.inf):
        assert not policy.sane(good._replace(theta=np.array([[0.0, 0.0], [0.0, wrong]])))


def test_what_a_policy_has_unless_it_says_otherwise():
    policy = Oracle(problem=Problem(dim=3))
    assert (policy.noise_size, policy.on_reward_scale, policy.least_bytes) == (0, False, 24)
    with pytest.raises(ValueError, match="knows no items"):
        Oracle(problem=Problem(dim=6, items=(2, 3)))
    for make in (Oracle, Oracle.from_theory):
        with pytest.raises(ValueError, match=r"Problem\(dim=...\)"):
            make(problem={"dim": 3})


def test_a_memory_that_is_read_only_can_choose_and_not_learn():
    memory = LINEAR.init(2)
    for array in memory:
        array.flags.writeable = False
    assert LINEAR.choose(memory, np.zeros((2, 4, 3))).shape == (2,)
    with pytest.raises(ValueError, match="read-only: pass a copy"):
        LINEAR.update(memory, np.zeros((2, 3)), np.zeros(2))


def test_a_memory_from_rows_is_a_copy():
    rows = LINEAR.rows(LINEAR.init(2))
    before = rows.copy()
    memory = LINEAR.from_rows(rows)
    memory.theta[:] = 7.0
    np.testing.assert_array_equal(rows, before)

"""The contract of `Policy` as checks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.checks.recipes import check_recipe, run_checks, same
from driftbandit.policies import Policy

ROUNDS, N_ARMS = 25, 7


def check_policy(policy: Policy) -> None:
    """Raise AssertionError if the policy breaks the contract of `Policy`."""
    run_checks(policy_checks(), policy)


def policy_checks() -> tuple[Callable[[Policy], None], ...]:
    """Every check of a policy, to run one by one."""
    return (
        check_recipe,
        check_memory_is_arrays_with_a_leading_axis,
        check_choose_gives_an_arm_for_every_learner,
        check_update_learns_and_leaves_its_arguments_untouched,
        check_choose_leaves_memory_and_inputs_untouched,
        check_choice_is_the_largest_score,
        check_same_input_same_result,
        check_alone_equals_in_batch,
        check_one_arm,
        check_arms_may_come_and_go,
        check_saved_bandit_continues_bit_for_bit,
    )


def check_choose_gives_an_arm_for_every_learner(policy: Policy) -> None:
    stream = _Stream(policy, n=3)
    choice = np.asarray(policy.choose(policy.init(3), stream.arms[0], stream.noise[0]))
    assert choice.shape == (3,), f"choose gives the shape {choice.shape}, not (n,) = (3,)"
    assert choice.dtype.kind in "iu", f"choose gives {choice.dtype}, not whole numbers"
    assert ((choice >= 0) & (choice < N_ARMS)).all(), "choose gives an arm that does not exist"


def check_update_learns_and_leaves_its_arguments_untouched(policy: Policy) -> None:
    stream = _Stream(policy, n=3)
    x, noise = stream.arms[0, :, 0].copy(), stream.noise[0]
    reward = stream.rewards(x, 0)
    before = [a.copy() for a in (x, reward, noise)]
    memory = policy.update(policy.init(3), x, reward, noise)
    assert memory is not None, "update must return the memory"
    same((x, reward, noise), before, "update changed its arguments")
    for name, array in zip(memory._fields, stream.play(policy.init(3))):
        assert not np.isnan(array).any(), f"{name} is NaN after {ROUNDS} rounds"
    assert (memory.t == 1).all(), "update must count rounds in t"


def check_choose_leaves_memory_and_inputs_untouched(policy: Policy) -> None:
    stream = _Stream(policy, n=3)
    memory = stream.play(policy.init(3))
    arms, noise = stream.arms[0], stream.noise[0]
    before = [a.copy() for a in (*memory, arms, noise)]
    policy.choose(memory, arms, noise)
    policy.scores(memory, arms)
    same((*memory, arms, noise), before, "choose or scores changed its arguments")


def check_choice_is_the_largest_score(policy: Policy) -> None:
    """Unless luck decides, the choice maximises `upper` = mean + bonus."""
    stream = _Stream(policy, n=3)
    memory = stream.play(policy.init(3))
    mean, bonus, upper = policy.scores(memory, stream.arms[0])
    assert mean.shape == bonus.shape == upper.shape == (3, N_ARMS)
    assert np.allclose(mean + bonus, upper)
    if not policy.noise_size:
        choice = policy.choose(memory, stream.arms[0], stream.noise[0])
        assert np.allclose(upper[np.arange(3), choice], upper.max(axis=1), rtol=1e-12)


def check_same_input_same_result(policy: Policy) -> None:
    stream = _Stream(policy, n=2)
    first, second = stream.play(policy.init(2)), stream.play(policy.init(2))
    same(first, second, "two learners that saw the same differ")


def check_alone_equals_in_batch(policy: Policy) -> None:
    stream = _Stream(policy, n=4)
    batch = stream.play(policy.init(4))
    for i in range(4):
        alone = stream.only(i).play(policy.init(1))
        row = [array[i : i + 1] for array in batch]
        for part in zip(batch._fields, alone, row):
            found, expected = _common(policy, *part)
            same([found], [expected], f"row {i} alone differs")


def check_memory_is_arrays_with_a_leading_axis(policy: Policy) -> None:
    memory: Any = policy.init(5)
    assert hasattr(memory, "_fields"), "the memory must be a NamedTuple"
    assert "t" in memory._fields, "the memory must count rounds in an array t (n,)"
    for name, array in zip(memory._fields, memory):
        assert isinstance(array, np.ndarray), f"{name} is no array"
        assert array.shape[0] == 5, f"{name} has no leading axis of learners"
        assert array.dtype != object, f"{name} holds objects"


def check_one_arm(policy: Policy) -> None:
    stream = _Stream(policy, n=2, n_arms=1)
    assert (policy.choose(policy.init(2), stream.arms[0], stream.noise[0]) == 0).all()


def check_arms_may_come_and_go(policy: Policy) -> None:
    bandit = Bandit(policy)
    for t, count in enumerate((5, 1, 12, 3)):
        arms = _Stream(policy, n=1, n_arms=count).arms[t, 0]
        assert 0 <= bandit.choose(arms) < count
        bandit.update(arms[0], float(policy.problem.family.draw(0.0, 0.4)))
    assert bandit.rounds == 4


def check_saved_bandit_continues_bit_for_bit(policy: Policy) -> None:
    stream = _Stream(policy, n=1)
    bandit = Bandit(policy, seed=3)
    half = ROUNDS // 2
    _train(bandit, stream, range(half))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "saved bandit.npz"
        bandit.save(path)
        loaded, pickled = Bandit.load(path), pickle.loads(pickle.dumps(bandit))
    expected = _train(bandit, stream, range(half, ROUNDS))
    for copy in (loaded, pickled):
        assert _train(copy, stream, range(half, ROUNDS)) == expected, (
            "a resumed bandit chose otherwise"
        )
        same(copy._memory, bandit._memory, "a resumed bandit remembers otherwise")


class _Stream:
    """Contexts, luck and noise for n learners, the same whoever plays."""

    def __init__(self, policy: Policy, n: int, n_arms: int = N_ARMS) -> None:
        rng = np.random.default_rng(7)
        self.policy, d = policy, policy.problem.dim
        arms = rng.standard_normal((ROUNDS, n, n_arms, d))
        norms = np.linalg.norm(arms, axis=-1, keepdims=True)
        self.arms = arms / norms * policy.problem.context_norm * rng.random((ROUNDS, n, n_arms, 1))
        self.luck = rng.random((ROUNDS, n))
        self.noise = rng.standard_normal((ROUNDS, n, policy.noise_size))

    def only(self, i: int) -> _Stream:
        part = object.__new__(_Stream)
        part.policy, row = self.policy, slice(i, i + 1)
        part.arms, part.luck, part.noise = self.arms[:, row], self.luck[:, row], self.noise[:, row]
        return part

    def rewards(self, x: Any, t: int) -> Any:
        """Return the rewards of contexts (n, d) in round t."""
        return self.policy.problem.family.draw(0.3 * x[:, 0], self.luck[t])

    def play(self, memory: Any) -> Any:
        rows = np.arange(self.luck.shape[1])
        for t, (arms, noise) in enumerate(zip(self.arms, self.noise)):
            x = arms[rows, self.policy.choose(memory, arms, noise)]
            memory = self.policy.update(memory, x, self.rewards(x, t), noise)
        return memory


def _train(bandit: Bandit, stream: _Stream, rounds: range) -> list[int]:
    choices = []
    for t in rounds:
        arm = bandit.choose(stream.arms[t, 0])
        reward = bandit.policy.problem.family.draw(0.2, stream.luck[t, 0])
        bandit.update(stream.arms[t, 0, arm], float(reward))
        choices.append(arm)
    return choices


def _common(policy: Policy, name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both arrays; where they may grow, what both have room for: company can add to the room."""
    if name not in policy.growing:
        return a, b
    corner = tuple(slice(min(m, n)) for m, n in zip(a.shape, b.shape))
    return a[corner], b[corner]

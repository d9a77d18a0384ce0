"""What can be said of a run besides its regret: functions of arrays (n, T), a row per seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate

Floats = NDArray[np.float64]
NO_REGRET = 1e-12  # rounding of the best arm's own regret


def best_arm_rate(regret: Floats) -> Floats:
    """Return the share of rounds in which a best arm was played, (n,).

    >>> best_arm_rate(np.array([[0.2, 0.0, 0.0, 0.1]]))
    array([0.5])
    """
    return np.asarray((np.asarray(regret) <= NO_REGRET).mean(axis=1))


def moving_means(values: Floats, length: int) -> Floats:
    """Return the means of every `length` consecutive rounds, (n, T - length + 1)."""
    values = np.asarray(values, dtype=float)
    T = values.shape[1]
    length = validate.count("length", length, "rounds of a window")
    if length > T:
        raise ValueError(f"a window of {length} rounds does not fit into {T}: pass a shorter one")
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    return np.asarray((sums[:, length:] - sums[:, :-length]) / length)


def worst_window(regret: Floats, length: int = 100) -> Floats:
    """Return the largest mean regret of `length` consecutive rounds, (n,): how bad it got.

    >>> worst_window(np.array([[0.0, 0.4, 0.2, 0.0]]), length=2).round(3)
    array([0.3])
    """
    return np.asarray(moving_means(regret, length).max(axis=1))


def recovery_time(
    rewards: Floats, change: int, *, share: float = 0.95, length: int = 100, low: float = 0.0
) -> Floats:
    """Return how many rounds after a change the reward is back, (n,), infinite if it never is.

    It is back at the end of the first `length` rounds, all after the change, whose mean reward is
    `share` of that of the `length` rounds before it. So it takes `length` rounds at least. Rewards
    are counted from `low`, the smallest possible one. `change` is the number of rounds before it.

    >>> rewards = np.array([[1.0, 1.0, 0.0, 0.0, 1.0, 1.0]])
    >>> recovery_time(rewards, change=2, length=2)
    array([4.])
    """
    rewards, T = np.asarray(rewards, dtype=float) - low, np.shape(rewards)[1]
    if not length <= change <= T - length:
        raise ValueError(
            f"change={change} must have {length} rounds before and after it, of {T}: pass a "
            "smaller length"
        )
    before = rewards[:, change - length : change].mean(axis=1)
    back = moving_means(rewards[:, change:], length) >= share * before[:, None]
    first: Any = np.argmax(back, axis=1) + float(length)
    return np.where(back.any(axis=1), first, np.inf)

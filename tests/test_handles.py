"""Compiled code that is handed anything: it looks before it reads."""

import numpy as np
import pytest

from driftbandit import DOMD, AutoDOMD, Bandit, Problem, handles

pytestmark = pytest.mark.skipif(not handles.AVAILABLE, reason="no compiled code")

ARMS = np.array([[0.6, 0.2, 0.1], [0.1, 0.7, 0.3]])


class Sub(np.ndarray):
    pass


class Liar:
    """Looks like an array."""

    dtype, ndim, shape, flags = ARMS.dtype, 2, ARMS.shape, ARMS.flags
    ctypes = ARMS.ctypes


STRANGE = [
    None,
    True,
    0,
    10**30,
    1.5,
    "arms",
    b"arms",
    object(),
    object,
    np.ndarray,
    [],
    ARMS.tolist(),
    ARMS.astype(np.float32),
    ARMS.astype(">f8"),
    ARMS.astype(object),
    ARMS.astype(int),
    ARMS.view(Sub),
    np.ma.array(ARMS),
    ARMS[None],
    ARMS[:, :2],
    ARMS[::-1],
    ARMS.T.copy().T,
    np.float64(1.0),
    np.array(1.0),
    np.empty((0, 3)),
    np.empty((2, 0)),
    np.lib.stride_tricks.as_strided(ARMS, strides=(0, 8)),
    memoryview(ARMS),
    Liar(),
]


@pytest.mark.parametrize("given", STRANGE, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("kind", [DOMD, AutoDOMD])
def test_what_is_no_plain_matrix_is_left_to_python(kind, given):
    bandit = Bandit(kind(problem=Problem(dim=3)))
    before = bandit._single.copy()
    assert bandit._choose(given) == -1
    assert not bandit._update(given, 1.0)
    for old, new in zip(before, bandit._single.copy()):
        np.testing.assert_array_equal(old, new)


def test_axes_are_counted():
    bandit = Bandit(DOMD(problem=Problem(dim=3)))
    assert bandit._choose(ARMS[0]) == -1
    assert not bandit._update(ARMS, 1.0)
    assert bandit._choose(ARMS) >= 0
    assert bandit._update(ARMS[0], 1.0)


NOT_NUMBERS = ["1", b"1", None, 1j, np.complex128(1), [1], object(), float, 10**400]


@pytest.mark.parametrize("given", NOT_NUMBERS, ids=lambda given: type(given).__name__)
def test_what_is_no_number_is_no_reward(given):
    bandit = Bandit(DOMD(problem=Problem(dim=3)))
    assert not bandit._update(ARMS[0], given)
    with pytest.raises(ValueError, match="reward must be"):
        bandit.update(ARMS[0], given)
    assert bandit.rounds == 0


@pytest.mark.parametrize("given", [1, 1.0, True, np.float32(1), np.int8(1), np.bool_(True)])
def test_numbers_of_all_kinds_are_the_same_reward(given):
    first, second = (Bandit(DOMD(problem=Problem(dim=3))) for _ in range(2))
    first.update(ARMS[0], given)
    second.update(ARMS[0], 1.0)
    np.testing.assert_array_equal(first.theta, second.theta)


def test_a_read_only_matrix_will_do():
    bandit, arms = Bandit(DOMD(problem=Problem(dim=3))), ARMS.copy()
    arms.flags.writeable = False
    assert bandit._choose(arms) == bandit.choose(ARMS.tolist())


def test_without_handles_a_bandit_does_the_same(monkeypatch):
    fast = Bandit(DOMD(problem=Problem(dim=3)))
    monkeypatch.setattr("driftbandit.policies.domd.AVAILABLE", False)
    slow = Bandit(DOMD(problem=Problem(dim=3)))
    for t in range(50):
        arm = fast.choose(ARMS)
        assert slow.choose(ARMS) == arm
        for bandit in (fast, slow):
            bandit.update(ARMS[arm], t % 2)
    np.testing.assert_array_equal(fast.theta, slow.theta)

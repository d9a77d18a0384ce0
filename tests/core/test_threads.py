"""LAPACK on one thread while a kernel runs, and as before afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController

from driftbandit import DOMD, Bandit, Problem
from driftbandit.core.threads import SHARED_FROM, single


@pytest.fixture
def libraries():
    """BLAS libraries that have two threads for the time of a test."""
    scipy.linalg.cholesky(np.eye(2))  # it is loaded
    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    before = [lib.get_num_threads() for lib in found]
    for lib in found:
        lib.set_num_threads(2)
    yield found
    for lib, n in zip(found, before):
        lib.set_num_threads(n)


def threads(libraries) -> list[int]:
    return [lib.get_num_threads() for lib in libraries]


def test_a_large_call_has_one_thread_and_gives_the_others_back(libraries):
    assert 1 in single(lambda: threads(libraries), SHARED_FROM)()
    assert threads(libraries) == [2] * len(libraries)


def test_a_call_that_fails_gives_the_threads_back(libraries):
    def fail():
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        single(fail, SHARED_FROM)()
    assert threads(libraries) == [2] * len(libraries)


def test_a_small_call_is_not_wrapped():
    assert single(threads, SHARED_FROM - 1) is threads


def test_the_number_of_threads_changes_no_digit(libraries):
    rng, bits = np.random.default_rng(3), []
    X = rng.standard_normal((30, 160))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for n in (1, 2):
        for lib in libraries:
            lib.set_num_threads(n)
        bandit = Bandit(DOMD(problem=Problem(dim=160)))
        for t, x in enumerate(X):
            bandit.choose(X)
            bandit.update(x, float(t % 2))
        bits.append(bandit.theta.tobytes())
    assert bits[0] == bits[1]

"""The C round of yardstick.c, compiled on first use and called through ctypes.

A yardstick only: the package never imports it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-lm")


class Params(ctypes.Structure):
    """The recipe in the paper's letters."""

    _fields_ = (
        ("d", ctypes.c_int64),
        *((letter, ctypes.c_double) for letter in ("S", "gamma", "lam", "eta", "bonus")),
    )


def compiler() -> str | None:
    """The C compiler of this machine, if it has one."""
    return shutil.which(os.environ.get("CC", "cc"))


@functools.cache
def library() -> ctypes.CDLL:
    """yardstick.c for this machine, compiled unless a compiled one of the same text is there."""
    text = SOURCE.read_bytes() + " ".join(FLAGS).encode()
    folder = Path(tempfile.gettempdir()) / f"driftbandit-yardstick-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not target.exists():
        half = target.with_suffix(f".{os.getpid()}")  # two processes may compile at once
        subprocess.run([compiler() or "cc", "-o", half, SOURCE, *FLAGS], check=True)
        half.replace(target)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # no spinning into the next measurement
    found = ctypes.CDLL(str(target))
    address, count, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    found.choose.argtypes, found.choose.restype = [address, address, address, count], count
    found.learn.argtypes, found.learn.restype = [address, address, address, number], None
    found.choose_all.argtypes = [address, count, address, address, address, count, address]
    found.learn_all.argtypes = [address, count, address, address, address, address]
    found.choose_all.restype = found.learn_all.restype = None
    return found


def params_of(policy) -> Params:
    """The recipe of a logistic DOMD with a constant bonus."""
    problem, lam = policy.problem, policy.regularization * policy.problem.context_norm**2
    return Params(problem.dim, problem.ball, policy.discount, lam, policy.step, policy.bonus)


class Yardstick:
    """One learner; `choose_at` and `learn_at` take addresses, the cheapest call ctypes has."""

    def __init__(self, policy):
        d = policy.problem.dim
        self.params, self.cell = params_of(policy), np.zeros(4 * d * d + 33 * d)
        self.theta, self.H = self.cell[:d], self.cell[d : d + d * d].reshape(d, d)
        self.H[:] = self.params.lam * np.eye(d)
        recipe, learner = ctypes.addressof(self.params), self.cell.ctypes.data
        self.choose_at = functools.partial(library().choose, recipe, learner)
        self.learn_at = functools.partial(library().learn, recipe, learner)

    def choose(self, arms):
        return self.choose_at(arms.ctypes.data, len(arms))

    def update(self, x, r):
        self.learn_at(x.ctypes.data, r)


class YardstickFleet:
    """n learners, on as many cores as OMP_NUM_THREADS says, or all."""

    def __init__(self, policy, n: int):
        d = policy.problem.dim
        self.params, self.n = params_of(policy), n
        self.theta, self.H = np.zeros((n, d)), np.tile(self.params.lam * np.eye(d), (n, 1, 1))
        self.memory = (self.theta.ctypes.data, self.H.ctypes.data)

    def choose(self, arms):
        out = np.empty(self.n, dtype=np.int64)
        library().choose_all(
            ctypes.addressof(self.params),
            self.n,
            *self.memory,
            arms.ctypes.data,
            arms.shape[1],
            out.ctypes.data,
        )
        return out

    def update(self, x, r):
        recipe = ctypes.addressof(self.params)
        library().learn_all(recipe, self.n, *self.memory, x.ctypes.data, r.ctypes.data)

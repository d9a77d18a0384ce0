"""Changes that no test can notice, each with its reason; `*` at the end of a change is any end."""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {
    "how long to try: Newton's method has converged long before": (
        "core/projection.py : 64 -> 65",
        "core/projection.py project: 100 -> 101",
        "core/projection.py multiplier: 100 -> 101",
        "core/projection.py project_by_solves: 2 -> 3",
    ),
    "when to stop: `shrink` puts the last rounding right, and one more step changes no digit": (
        "core/projection.py : 1.0 + 1e-14 -> *",
        "core/projection.py : 1e-14 -> 2e-14",
        "core/projection.py project: length <= S * CLOSE -> length < S * CLOSE",
        "core/projection.py project: S * CLOSE -> S / CLOSE",
        "core/projection.py project: S * CLOSE -> S",
        "core/projection.py project: nu + step <= nu -> nu + step < nu",
        "core/projection.py shrink: 50 -> 51",
        "core/projection.py project_by_solves: nu * b[k] * abs(y[0, k]) <= 1e-14 -> "
        "nu * b[k] * abs(y[0, k]) < 1e-14",
        "core/projection.py project_by_solves: 1e-14 -> 2e-14",
        "core/projection.py multiplier: abs(length - S) <= S * (CLOSE - 1.0) -> "
        "abs(length - S) < S * (CLOSE - 1.0)",
        "core/projection.py multiplier: length - S -> length + S",
        "core/projection.py multiplier: length - S -> length",
        "core/projection.py multiplier: S * (CLOSE - 1.0) -> CLOSE - 1.0",
        "core/projection.py multiplier: 1.0 -> 2.0 #2",
    ),
    "when to stop: what is not in the span yet is coupled by b[k], which then drops to nothing": (
        "core/projection.py project_by_solves: 1 -> 2 #3",
        "core/projection.py project_by_solves: nu * b[k] -> b[k]",
        "core/projection.py project_by_solves: 0 -> 1 #2",
    ),
    "a number is whole if it equals its floor, or its ceiling": (
        "policies/base.py sane: np.floor(t) -> np.ceil(t)",
    ),
    "an argument that every caller gives": (
        "policies/base.py init: 1 -> 2",
        "policies/master.py init: 1 -> 2",
    ),
    "room for one more order, or for one more learner, that is filled when it is needed": (
        "policies/master.py init: 1 -> 2 #2",
        "policies/master.py init: 1 -> 2 #3",
    ),
    "the first round writes over it, and a start below 0 is none": (
        "policies/master.py init: -1 -> 1",
        "policies/master.py init: 1 -> 2 #6",
        "policies/master.py init: 1.0 -> 2.0",
        "policies/master.py _plan: 1 -> 2 #2",
    ),
    "only the type is asked for, or only the first row is read": (
        "policies/master.py _learner_type: 1 -> 2",
        "policies/master.py choose: 1 -> 2",
        "policies/master.py choose: 1 -> 2 #2",
    ),
    "no coin falls on its edge": (
        "policies/master.py _plan: _share_below(coins[m]) < 2.0 ** (-(n - m) / 2) -> "
        "_share_below(coins[m]) <= 2.0 ** (-(n - m) / 2)",
    ),
    "the problem is checked again when the policy is made": (
        "policies/base.py from_theory: cls._check_problem(problem) -> pass",
    ),
    "every array is copied in the next line": ("policies/base.py from_rows: False -> True",),
    "the dataclass keeps the old default, which a test holds": (
        "policies/baselines.py Uniform: 1 -> 2",
    ),
    "the first group begins at place 0, whatever stands before it": (
        "policies/base.py turns: -1 -> 1",
        "policies/base.py turns: 1 -> 2",
    ),
    "all learners of BOB have the same fields, fresh rows, deviation and sanity": (
        "policies/bob.py init: 0 -> 1",
        "policies/bob.py _table: 0 -> 1",
        "policies/bob.py deviation: 0 -> 1",
        "policies/bob.py _learn: 0 -> 1",
        "policies/bob.py sane: 0 -> 1",
    ),
    "room for the last rounding": (
        "policies/bob.py sane: clock * (1.0 + 1e-09) -> clock",
        "policies/bob.py sane: 1.0 + 1e-09 -> 1.0",
        "policies/bob.py sane: 1e-09 -> 2e-09",
    ),
    "where a series takes over, or a number is too large for the next step: both sides agree": (
        "theory/sharp.py : 1e-06 -> 2e-06",
        "theory/sharp.py : 700.0 -> 1400.0",
        "theory/sharp.py divergence_factor: v > LARGE -> v >= LARGE",
        "theory/sharp.py divergence_factor: v < SMALL -> v <= SMALL",
    ),
    "how far a search looks: the valley is well inside": (
        "theory/tuning.py : 10000.0 -> 20000.0",
        "theory/tuning.py least_bound: 1.0 -> 2.0 #3",
    ),
    "no learner has a negative turn": ("core/auto.py age: 1.0 -> 2.0",),
    "a first guess: the method gets there from any": (
        "core/projection.py project_by_solves: 0.0 -> 1.0",
    ),
    "room that nobody uses": ("core/projection.py project_by_solves: 3 -> 4",),
    "any number says that LAPACK is at hand": ("core/projection.py project_by_solves: 1 -> 2",),
    "the first solve with nu = 0 gives the point itself, and nu is only compared": (
        "core/projection.py project: 0.0 -> 1.0",
        "core/projection.py project: nu > 0.0 -> nu >= 0.0",
    ),
    "a first value that is always replaced": (
        "core/projection.py project: 0.0 -> 1.0 #2",
        "core/auto.py judge: 0 -> 1",
    ),
    "scratch: room that nobody uses, or a write that only keeps it alive": (
        "core/domd.py learn: 0 -> 1",
        "core/domd.py learn: 0 -> 1 #3",
        "core/domd.py learn: 0.0 -> 1.0",
        "core/domd.py learn: 2 -> 3",
        "core/domd.py rank: 2 -> 3",
        "core/domd.py rank: 2 -> 3 #2",
        "core/domd.py rank: 1 -> 2 #2",
        "core/domd.py rank: 1 -> 2 #3",
        "core/domd.py rank: 0 -> 1 #3",
        "core/domd.py rank: 0 -> 1 #7",
        "core/domd.py rank: 0.0 -> 1.0 #3",
        "core/auto.py tracks: 2 -> 3",
    ),
    "no turn is no turn": ("core/domd.py rank: 1 -> 2 #5",),
    "WEIGHT is 0: it says what is meant": (
        "core/auto.py judge: WEIGHT + track -> track",
        "core/auto.py judge: WEIGHT + track -> track #2",
        "core/auto.py suspicion: WEIGHT + 1 -> 1",
        "core/auto.py renew: WEIGHT + 1 -> 1",
        "core/auto.py renew: WEIGHT + track -> track",
        "core/auto.py weigh: WEIGHT + 1 -> 1",
    ),
    "which arm is looked at first, or twice, changes the work and no answer": (
        "core/domd.py rank: -1 -> 1 #3",
        "core/domd.py rank: 1 -> 2 #4",
        "core/domd.py bounded: 0 -> 1",
        "core/domd.py bounded: -math.inf -> math.inf",
        "core/domd.py bounded: total > most -> total >= most",
        "core/domd.py bounded: total > most -> total <= most",
    ),
    "any negative number says that an arm is no context": ("core/domd.py bounded: 1 -> 2",),
    "no arm is compared with itself": ("core/domd.py ahead: a < b -> a <= b",),
    "both sides are the same number": (
        "core/links.py mean_slope: z >= 0.0 -> z > 0.0",
        "core/links.py possible: math.floor(r) -> math.ceil(r)",
    ),
    "only compiled code needs it, and does not compile without": (
        "core/domd.py : register_jitable(formula) -> pass",
    ),
    "a point on the sphere is its own projection": (
        "core/domd.py learn: dot(theta, theta) > q[S] * q[S] -> dot(theta, theta) >= q[S] * q[S]",
        "core/auto.py train: dot(theta, theta) > S * S -> dot(theta, theta) >= S * S",
    ),
    "two roads to the same numbers, of which one is faster": (
        "core/domd.py learn: high_dim is not None -> high_dim is None",
        "core/auto.py train: high_dim is not None -> high_dim is None",
        "core/linalg.py factor: high_dim is not None -> high_dim is None",
        "core/linalg.py solve: high_dim is not None -> high_dim is None",
        "core/linalg.py inverse_norm: high_dim is not None -> high_dim is None",
    ),
    "not read where the factor is given": ("core/domd.py learn: 1.0 -> 2.0 #2",),
    "bounds save work and never change an answer: these save less": (
        "core/domd.py rank: 0.0 -> 1.0 #2",
        "core/domd.py longest: 1e-09 -> 2e-09",
    ),
    "the upper half is not read before the last loop writes it": (
        "core/linalg.py inverse: k + 1 -> k - 1",
        "core/linalg.py inverse: k + 1 -> k",
        "core/linalg.py inverse: k + 1 -> 1",
    ),
    "e^-40 is less than a digit of 1": (
        "theory/radius.py discounted_count: rounds > -40.0 -> rounds >= -40.0",
        "theory/radius.py discounted_count: 40.0 -> 80.0",
    ),
    "how much at once: the split changes no number": (
        "theory/losses.py : 2000000 -> 2000001",
        "theory/replay.py : 64 -> 65",
        "theory/losses.py drifted: 1 -> 2",
        "theory/losses.py drifted: PAIRS // (n * T) -> PAIRS * (n * T)",
        "theory/losses.py drifted: n * T -> n",
        "theory/losses.py drifted: n * T -> T",
        "theory/losses.py drifted: min(start + step, T) -> max(start + step, T)",
        "theory/auxiliary.py wandered: 1 -> 2",
        "theory/auxiliary.py wandered: PAIRS // (n * T) -> PAIRS * (n * T)",
        "theory/auxiliary.py wandered: n * T -> n",
        "theory/auxiliary.py wandered: n * T -> T",
    ),
    "in round 1 there is no earlier round, and sums are 0": ("theory/losses.py drifted: 0 -> 1",),
    "nodes lie symmetrically about 0, and 64 of them are exact to rounding": (
        "theory/losses.py normal: 64 -> 65",
        "theory/auxiliary.py interval: 64 -> 65",
        "theory/losses.py mix_loss: centre[..., None] + np.sqrt(variance)[..., None] * nodes -> "
        "centre[..., None] - np.sqrt(variance)[..., None] * nodes",
        "theory/losses.py bregman: centre[..., None] + np.sqrt(variance)[..., None] * nodes -> "
        "centre[..., None] - np.sqrt(variance)[..., None] * nodes",
    ),
    "a place of the recipe that only AutoDOMD reads": ("policies/domd.py recipe: 0.0 -> 1.0",),
    "a constant radius: one of log_mass and mass is 0, so that the others are not read": (
        "policies/domd.py _radius: 0.0 -> 1.0 #2",
        "policies/domd.py _radius: 0.0 -> 1.0 #3",
        "policies/domd.py _radius: 1.0 -> 2.0",
    ),
    "0 to the power of -1/2 is infinite, too": (
        "theory/auxiliary.py gauss_exp: left > 0.0 -> left >= 0.0",
    ),
    "a tolerance for rounding, and nothing is that close": (
        "theory/auxiliary.py gauss_exp_applies: lam >= (1.0 - 1e-12) * 32.0 * alpha * d * c / 7.0 "
        "-> lam > *",
        "theory/auxiliary.py gauss_exp_applies: (1.0 - 1e-12) * 32.0 -> 32.0",
        "theory/auxiliary.py gauss_exp_applies: 1.0 - 1e-12 -> 1.0",
        "theory/auxiliary.py gauss_exp_applies: 1e-12 -> 2e-12",
        "policies/domd.py narrow: added > 0.1 * lam -> added >= 0.1 * lam",
        "policies/domd.py __post_init__: self._lam < FAINTEST * self._most -> "
        "self._lam <= FAINTEST * self._most",
        "theory/replay.py _check_regret: 1e-09 -> 2e-09",
        "theory/replay.py _check_regret: 1e-06 -> 2e-06",
        "theory/verdict.py : 1e-08 -> 2e-08",
        "theory/extensions.py least_discount: 1e-06 -> 2e-06",
        "theory/verdict.py tightest: 1e-09 -> 2e-09",
        "theory/verdict.py holds: self.slack >= -ROUNDING * (1.0 + np.abs(self.right)) -> "
        "self.slack > -ROUNDING * (1.0 + np.abs(self.right))",
        "theory/verdict.py holds: 1.0 -> 2.0",
        "theory/verdict.py tightest: size > 1e-09 * size.max() -> size >= 1e-09 * size.max()",
    ),
    "a guard against overflow and the logarithm of 0, far from any number that occurs": (
        "core/auto.py : 1e+100 -> 2e+100",
        "core/auto.py judge: 1e-300 -> 2e-300",
        "policies/domd.py narrow: 1e-100 -> 2e-100",
    ),
    "every learner has the same ball": ("core/auto.py train: GRID + 2 * n + k -> GRID + 2 * n",),
    "a truth value is 0 or 1; numba wants one type": (
        "core/auto.py weigh: 1.0 * (k == lead) -> k == lead",
    ),
    "H is square": ("theory/extensions.py observed_beta: 1 -> 2",),
    "where to search: beyond 1/T and 1 - 1/T the discount is clipped": (
        "theory/extensions.py least_discount: 1.0 -> 2.0",
        "theory/extensions.py least_discount: math.log1p(-1.0 / T) -> -1.0 / T",
        "theory/extensions.py least_discount: -1.0 -> 1.0",
        "theory/extensions.py least_discount: 1.0 -> 2.0 #2",
    ),
}


def reason(key: str) -> str | None:
    """Why this mutant may live, or None."""
    for why, keys in REASONS.items():
        for known in keys:
            if key == known or (known.endswith("*") and key.startswith(known[:-1])):
                return why
    return None

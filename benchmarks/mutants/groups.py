"""Which tests judge which files, the quickest first: a mutant's tests end at the first failure."""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Files, relative to the package, and the arguments of pytest that judge them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


CONSTANTS = ("tests/theory/test_constants.py", "tests/theory/test_theory.py")
PROOF = ("tests/theory/test_proof.py",)
KERNELS = "tests/core/test_kernels.py"
DOMD = ("tests/core/test_domd.py",)
BOB = ("tests/theory/test_bob.py", "tests/policies/test_contract.py", "-k", "bob or BOB")
ROWS = "tests/policies/test_rows_of_policies.py"
LINALG = ("tests/core/test_linalg.py",)
SHARP = ("tests/theory/test_sharp.py",)
STEPS = ("tests/policies/test_rival_steps.py", "tests/policies/test_readings.py")
# One setting of the references, the one in which projections are at work: they are slow.
RIVALS = (
    *STEPS,
    "tests/policies/test_rivals.py",
    "-k",
    "not rival_is_its_naive_twin or Bernoulli-0.15",
)

GROUPS = {
    "theory": (
        Group(("theory/domd.py", "theory/bounds.py", "theory/piecewise.py"), CONSTANTS),
        Group(("theory/extensions.py", "theory/radius.py"), CONSTANTS),
        Group(("theory/sharp.py", "theory/tuning.py"), ("tests/theory/test_constants.py", *SHARP)),
        Group(("theory/losses.py", "theory/replay.py", "theory/proof.py"), PROOF),
        Group(("theory/auxiliary.py",), ("tests/theory/test_proof_gaps.py", *PROOF)),
        Group(("theory/orders.py",), ("tests/theory/test_orders.py",)),
        Group(("theory/verdict.py",), PROOF),
    ),
    "rivals": (Group(("theory/rivals.py",), ("tests/theory/test_rival_constants.py",)),),
    "policies": (
        Group(("policies/likelihood.py", "policies/glm.py", "mle.py"), RIVALS),
        Group(("policies/master.py", "policies/index.py"), RIVALS),
        Group(("policies/linear.py", "policies/gloc.py"), RIVALS),
        Group(("policies/domd.py",), ("tests/policies/test_domd_recipe.py", *DOMD, *STEPS)),
        Group(("policies/bob.py", "theory/bob.py"), BOB),
        Group(
            ("policies/baselines.py", "policies/base.py"), (ROWS, "tests/policies/test_contract.py")
        ),
        Group(("policies/growth.py",), ("tests/core/test_growth.py",)),
    ),
    "kernels": (
        Group(("core/linalg.py",), (*LINALG, KERNELS)),
        Group(("core/projection.py",), (KERNELS,)),
        Group(("core/links.py",), (KERNELS, *DOMD)),
        Group(("core/domd.py",), (KERNELS, *DOMD)),
        Group(("core/auto.py",), ("tests/core/test_mixture.py",)),
    ),
}

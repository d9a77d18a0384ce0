"""`python -m benchmarks.mutants [theory|rivals|kernels|FILE ...]`: prints who survives."""

from __future__ import annotations

import os
import sys
import time

import pytest

from benchmarks.mutants.changes import Mutant, mutants
from benchmarks.mutants.equivalent import REASONS, reason
from benchmarks.mutants.groups import GROUPS, Group
from benchmarks.mutants.judge import PACKAGE, ROOT, Judge

PROCESSES = int(os.environ.get("MUTANT_PROCESSES", "2"))
OPTIONS = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--no-header", "--no-summary")


def chosen(names: list[str]) -> list[Group]:
    """Groups cut down to the files that are asked for; all without names."""
    groups = [group for one in GROUPS.values() for group in one]
    known = {*GROUPS, *(file for group in groups for file in group.files)}
    if set(names) - known:
        sys.exit(f"no such group or file: choose among {', '.join(sorted(known))}")
    wanted = {f for n in names for group in GROUPS.get(n, ()) for f in group.files} | set(names)
    cut = (Group(tuple(f for f in g.files if not names or f in wanted), g.tests) for g in groups)
    return [group for group in cut if group.files]


def run(group: Group, made: list[Mutant]) -> list[Mutant]:
    """Who survives."""
    judge = Judge([mutant for mutant in made if reason(mutant.key) is None], PROCESSES)
    print(f"{', '.join(group.files)}: {len(judge.mutants)} mutants", flush=True)
    pytest.main(
        [*OPTIONS, "--override-ini", "filterwarnings=default", *group.tests], plugins=[judge]
    )
    if not judge.done:
        sys.exit("not finished")
    return judge.survivors


def main(names: list[str]) -> None:
    tic, groups = time.perf_counter(), chosen(names)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    os.chdir(ROOT)
    made = {group: [m for f in group.files for m in mutants(PACKAGE, f)] for group in groups}
    stale = sorted(_stale([mutant for one in made.values() for mutant in one]))
    survivors = [mutant for group in groups for mutant in run(group, made[group])]
    total = sum(map(len, made.values()))
    excused = sum(reason(m.key) is not None for one in made.values() for m in one)
    print(
        f"{total} mutants: {total - excused - len(survivors)} noticed, {excused} equivalent by "
        f"reason, {len(survivors)} survive; {time.perf_counter() - tic:.0f} s, "
        f"{sum(os.times()[:4]):.0f} s of processor"
    )
    if survivors or stale:
        sys.exit("\n".join(["survivors need a test, or a reason in equivalent.py", *stale]))


def _stale(made: list[Mutant]) -> set[str]:
    """Reasons for changes that the code no longer allows."""
    keys, files = {mutant.key for mutant in made}, {mutant.file for mutant in made}
    known = {key for group in REASONS.values() for key in group if key.split()[0] in files}
    return {
        f"no such change any more: {key}"
        for key in known - keys
        if not (key.endswith("*") and any(k.startswith(key[:-1]) for k in keys))
    }


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "Agg"
    # A child that is forked while libraries have threads waits forever for those it did not get.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":  # before numba is imported
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.mutants", *sys.argv[1:]])
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)

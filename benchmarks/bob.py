"""What docs/bob.md says in numbers: BOB-DOMD's price from stored results, its bound from theory."""

from __future__ import annotations

from statistics import geometric_mean

from benchmarks.worlds import AUTO, mean, regrets

PLAYED, KNOWING = "BOB-DOMD, scale 0.2", "DOMD-GLB, scale 0.2"
CALM = "stationary, S = 1"


def price() -> str:
    """Its regret over AutoDOMD's, in the worlds that move and in the one that does not."""
    worlds = regrets("bob")
    calm = worlds.pop(CALM)
    moving = [mean(lines, PLAYED) / mean(lines, AUTO) for lines in worlds.values()]
    return (
        f"{min(moving):.1f} to {max(moving):.1f} times AutoDOMD's regret in the worlds that move "
        f"({geometric_mean(moving):.1f} times in geometric mean), and "
        f"{mean(calm, PLAYED) / mean(calm, AUTO):.1f} times in the one that stands still"
    )


def ahead() -> str:
    """In how many worlds that move it has less regret than DOMD that knows how much they do."""
    worlds = [lines for world, lines in regrets("bob").items() if world != CALM]
    won = sum(mean(lines, PLAYED) < mean(lines, KNOWING) for lines in worlds)
    return f"{won} of the {len(worlds)}"


def bound() -> str:
    """The explicit bound next to the most that anybody can lose."""
    from driftbandit import Circle, theory

    problem = Circle(radius=1.0, horizon=5000).problem
    most = 5000 * (problem.family.mu(1.0) - problem.family.mu(-1.0))
    return (
        f"{theory.bob_regret_bound(problem):,.0f} at T = 5000, where no policy can lose more than "
        f"{most:,.0f}"
    )

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
        f"{min(moving):.1f} to {max(moving):.1f} times AutoDOMD's regret in the environments that "
        f"move ({geometric_mean(moving):.1f} times in geometric mean), and "
        f"{mean(calm, PLAYED) / mean(calm, AUTO):.1f} times in the one that stands still"
    )


def ahead() -> str:
    """In how many worlds that move it has less regret than DOMD that knows how much they do."""
    worlds = [lines for world, lines in regrets("bob").items() if world != CALM]
    won = sum(mean(lines, PLAYED) < mean(lines, KNOWING) for lines in worlds)
    return f"{won} of the {len(worlds)}"


def bound() -> str:
    """The explicit bound next to the most that anybody can lose, and from where on it is less."""
    known, most = explicit(5000)
    first = next(k for k in range(4, 30) if explicit(10**k)[0] < explicit(10**k)[1])
    return (
        f"{known:,.0f} at T = 5000, where no policy can lose more than {most:,.0f}. Of the powers "
        f"of ten, T = 10^{first} is the first at which it says something"
    )


def explicit(T: int) -> tuple[float, float]:
    from driftbandit import Circle, theory

    problem = Circle(radius=1.0, horizon=T).problem
    most = T * (problem.family.mu(1.0) - problem.family.mu(-1.0))
    return theory.bob_regret_bound(problem), most

"""Routes by latency, with quiet nights; docs/gallery/routing.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import DOMD, Category, Features, Loop, Reward

ROUTES = ["north", "east", "south"]
ARMS = {route: {"route": route} for route in ROUTES}
DAYS, HOUR = 6, 3600.0


def arrivals(rng):
    """Seconds: 40 requests an hour from 8 to 20 o'clock, one an hour at night."""
    for hour in range(24 * DAYS):
        n = 40 if 8 <= hour % 24 < 20 else 1
        yield from np.sort(HOUR * (hour + rng.random(n)))


def latency(route, at, rng):
    """Milliseconds. Every night the load moves, and another route is fast."""
    night = int((at / HOUR + 20) // 24)  # it changes at 4 o'clock
    return rng.gamma(8.0) * (15 if ROUTES[night % 3] == route else 40)


# %% play
def play(**memory):
    """Hour of the day and latency of every request."""
    features = Features(context={}, arm={"route": Category(ROUTES)})
    reward = Reward(
        0, 1000, goal="min", wait="10s", missing=1000
    )  # no answer is the worst
    simulated = {
        "clock": "events",
        "training": "inline",
        "seed": 0,
    }  # live: leave these out
    loop = Loop(":memory:", features=features, reward=reward, **memory, **simulated)
    rng, found = np.random.default_rng(0), []
    for at in arrivals(rng):
        decision = loop.decide({}, ARMS, at=at)
        took = latency(decision.arm, at, rng)
        loop.reward(decision.id, took, at=at + took / 1000)
        found.append((at / HOUR % 24, took))
    return np.array(found)


# %% compare
problem = Features(context={}, arm={"route": Category(ROUTES)}).problem(
    Reward(0, 1000, goal="min")
)
found = {
    "forgets in rounds, half-life 320": play(
        policy=DOMD(problem=problem, half_life=320)
    ),
    "forgets in time, half-life 8 hours": play(policy=DOMD, half_life="8h"),
}
for name, (hour, took) in ((name, each.T) for name, each in found.items()):
    print(f"{name}: {took[(hour >= 8) & (hour < 9)].mean():.0f} ms from 8 to 9 o'clock")

# %% figure
fig, ax = plt.subplots()
for (name, each), colour in zip(found.items(), ["C1", "C0"]):
    hour, took = each.T
    mean = [took[hour // 1 == h].mean() for h in range(8, 20)]
    ax.plot(range(8, 20), mean, "o-", color=colour, label=name)
ax.set(xlabel="hour of the day", ylabel="mean latency, ms", ylim=0)
ax.legend()
fig.savefig("routing.svg")

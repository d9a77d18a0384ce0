"""Flights that arrive on time, and bikes; docs/gallery/flights.md explains it."""

# %% worlds
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import DOMD, AutoDOMD, Stream, Uniform, simulate

worlds = {}
for name in ("flights", "bike"):
    world = Stream(data=name, horizon=2000)
    try:
        print(
            name, world.rounds.arms.shape, world.rounds.licence
        )  # rounds, arms, coordinates
        worlds[name] = world
    except ValueError as missing:
        print(f"{name} is left out: {missing}")

# %% play
policies = {
    "AutoDOMD": AutoDOMD,
    "never forgets": lambda problem: DOMD(problem=problem, discount=1.0),
    "chance": Uniform,
}
found = {}
for name, world in worlds.items():
    for who, policy in policies.items():
        run = simulate(policy(problem=world.problem), world, seeds=[0])
        found[name, who] = run.rewards[0]
        print(f"{name}, {who}: {found[name, who].mean():.1%} right")

# %% figure
titles = {
    "flights": "Pick a flight that is on time",
    "bike": "Guess how many bikes are rented",
}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, name in zip(axes, worlds):
    for who in policies:
        ax.plot(
            np.convolve(found[name, who], np.full(200, 1 / 200), "valid"), label=who
        )
    ax.set(
        title=titles[name],
        xlabel="round",
        ylabel="share that is right (mean of 200)",
        ylim=0,
    )
axes[0].legend()
fig.savefig("flights.svg")

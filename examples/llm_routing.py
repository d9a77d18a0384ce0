"""Prompts to LLMs under a budget; docs/gallery/llm-routing.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import DOMD, Budget, Category, Features, Loop, Number, Reward

MODELS = {"small": 0.0002, "middle": 0.001, "large": 0.015}  # dollars for a call, about
PROMPTS, BUDGET = 2400, 0.002
rng = np.random.default_rng(0)


def answer(model, hard, t):
    """Is the answer good, and the bill. Half-way the large model becomes cheaper."""
    good = {"small": 0.9 - 0.8 * hard, "middle": 0.9 - 0.4 * hard, "large": 0.95}[model]
    fall = 0.2 if model == "large" and t >= PROMPTS // 2 else 1.0
    return float(rng.random() < good), MODELS[model] * fall * rng.lognormal(0.0, 0.3)


# %% declare
loop = Loop(
    ":memory:",
    features=Features(
        context={"hard": Number(0, 1)}, arm={"model": Category([*MODELS])}
    ),
    reward=Reward(0, 1),
    policy=DOMD,
    arms={name: {"model": name, "cost": cost} for name, cost in MODELS.items()},
    budget=Budget("cost", mean=BUDGET),  # dollars for a decision
    exploration=0.05,
    training="inline",
)

# %% route
spent, used = [], []
for t in range(PROMPTS):
    hard = float(rng.random() ** 2)
    made = loop.decide({"hard": hard})
    good, bill = answer(made.arm, hard, t)
    loop.metric(
        made.id, "cost", bill
    )  # now or later: what was expected counts until then
    loop.reward(made.id, good)
    spent.append(bill)
    used.append(made.arm)

# %% look
halves = (slice(200, PROMPTS // 2), slice(PROMPTS // 2, PROMPTS))
for half, when in zip(halves, ("before", "after")):
    large, mean = np.mean(np.array(used[half]) == "large"), np.mean(spent[half])
    print(f"{when}: {1000 * mean:.2f} dollars per thousand, large {large:.0%}")
print(f"{loop.health().budget['cost'].spent:.2f} dollars in all")
loop.close()

# %% figure
fig, ax = plt.subplots()
ax.plot(
    1000 * np.convolve(spent, np.full(200, 1 / 200), "valid"),
    label="mean of 200 prompts",
)
ax.axhline(1000 * BUDGET, color="k", ls=":", label="budget")
ax.axvline(PROMPTS // 2, color="C1", lw=0.8)
ax.set(xlabel="prompt", ylabel="dollars per thousand prompts")
ax.legend()
fig.savefig("llm_routing.svg")

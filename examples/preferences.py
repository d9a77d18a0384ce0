"""Which of two answers is better? docs/gallery/preferences.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import Category, Features, Loop, Number, Preference

PROMPTS = 1200
rng = np.random.default_rng(0)


def quality(model, code, t):
    """How good an answer is, in log-odds. Half-way the model "terse" gets an update."""
    update = 2.0 if t >= PROMPTS // 2 else 0.0
    return {"chatty": 1.0 - 2.0 * code, "coder": 3.0 * code, "terse": update}[model]


def preferred(pair, code, t):
    """Which of two answers a person clicks: the one at position 0 or 1."""
    first, second = (quality(model, code, t) for model in pair.arms)
    return 0 if rng.random() < 1 / (1 + np.exp(second - first)) else 1


# %% declare
models = ["chatty", "coder", "terse"]
loop = Loop(
    ":memory:",
    features=Features(context={"code": Number(0, 1)}, arm={"model": Category(models)}),
    reward=Preference(wait="10min"),
    arms={name: {"model": name} for name in models},
    exploration=0.05,
    clock="events",
    training="inline",
)

# %% ask
shown, clicks = [], []
for t in range(PROMPTS):
    now, code = 60.0 * t, float(rng.random() < 0.5)
    for due, id, position in [each for each in clicks if each[0] <= now]:
        loop.prefer(id, position, at=due)  # it may come minutes later
    clicks = [each for each in clicks if each[0] > now]
    pair = loop.decide({"code": code}, k=2, id=f"prompt {t}", at=now)
    if rng.random() < 0.7:  # others never say
        clicks.append((now + rng.uniform(10, 500), pair.id, preferred(pair, code, t)))
    best = max(models, key=lambda model: quality(model, code, t))
    shown.append(pair.arms[0] == best)

# %% look
late = slice(PROMPTS // 2, PROMPTS // 2 + 100)
for when, part in (
    ("before the update", slice(200, PROMPTS // 2)),
    ("right after it", late),
    ("at the end", slice(-300, None)),
):
    print(f"{when}: the best answer comes first in {np.mean(shown[part]):.0%}")
played = loop.decide({"code": 1.0}, at=60.0 * PROMPTS)  # one answer, no question
print(f"alone: {played.arm} rather than {played.why.runner_up}")
print(f"all audits agree: {all(each.agrees for each in loop.audits())}")
loop.close()

# %% figure
fig, ax = plt.subplots()
ax.plot(np.convolve(shown, np.full(100, 1 / 100), "valid"), label="mean of 100 prompts")
ax.axvline(PROMPTS // 2, color="C1", lw=0.8)
ax.axhline(1 / 3, color="k", ls=":", label="chance")
ax.set(xlabel="prompt", ylabel="best answer first", ylim=(0, 1))
ax.legend()
fig.savefig("preferences.svg")

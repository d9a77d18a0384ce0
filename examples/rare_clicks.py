"""A click rate of two per cent; docs/gallery/rare-clicks.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import AutoDOMD, Bandit, Category, Features

ADS, VIEWS = [f"ad {n}" for n in range(6)], 20_000
DEVICES = ["phone", "desktop"]
world = np.random.default_rng(0)
# Click rates of every device and ad, before and after a new campaign; 2 % in the mean.
rates = world.gamma(2.0, 0.01, size=(2, len(DEVICES), len(ADS)))

# %% learn
features = Features(
    context={"device": Category(DEVICES, required=True)},
    arm={"ad": Category(ADS, required=True)},
)
rows = [
    features.encode({"device": device}, [{"ad": ad} for ad in ADS])
    for device in DEVICES
]


def play(choose, learn):
    """Clicks, view by view. All players meet the same visitors and the same draws."""
    rng, clicks = np.random.default_rng(1), np.zeros(VIEWS)
    for t in range(VIEWS):
        device, luck, chance = (
            int(rng.integers(2)),
            rng.random(),
            rng.integers(len(ADS)),
        )
        now = rates[int(t >= VIEWS // 2), device]
        k = choose(device, now, chance)
        clicks[t] = luck < now[k]
        learn(device, k, clicks[t])
    return clicks


# %% compare
bandit = Bandit(AutoDOMD(problem=features.problem()))
found = {
    "every rate known": play(lambda device, now, chance: now.argmax(), lambda *_: None),
    "AutoDOMD": play(
        lambda device, now, chance: bandit.choose(rows[device]),
        lambda device, k, click: bandit.update(rows[device][k], click),
    ),
    "chance": play(lambda device, now, chance: chance, lambda *_: None),
}
for name, clicks in found.items():
    print(f"{name}: {clicks.sum():.0f} clicks, {clicks.mean():.1%} of the views")

# %% figure
fig, ax = plt.subplots()
for (name, clicks), colour in zip(found.items(), ("grey", "C0", "C1")):
    ax.plot(np.cumsum(clicks), colour, label=name)
ax.axvline(VIEWS // 2, color="grey", linestyle=":")
ax.text(VIEWS // 2, 0, "  all rates change")
ax.set(xlabel="views", ylabel="clicks so far")
ax.legend()
fig.savefig("rare_clicks.svg")

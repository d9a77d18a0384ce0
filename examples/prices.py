"""Prices in euros that follow demand; docs/gallery/prices.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import AutoDOMD, Bandit, Category, Features, Flag, Reward

PRICES = [19, 29, 39, 49, 59]
CUSTOMERS = 6000


def buys(member, price, t):
    """Chance of a sale. Members pay more; after 3,000 customers a rival shop opens."""
    budget = (90 if member else 60) * (1.0 if t < CUSTOMERS // 2 else 0.6)
    return max(0.02, 1.1 - price / budget)


# %% learn
features = Features(context={"member": Flag()}, arm={"price": Category(PRICES)})
revenue = Reward(0, 60)  # euros; who does not buy pays nothing
bandit = Bandit(AutoDOMD(problem=features.problem(revenue)))
rows = {
    m: features.encode({"member": m}, [{"price": p} for p in PRICES])
    for m in (True, False)
}

rng, played, earned = np.random.default_rng(0), {True: [], False: []}, 0.0
for t in range(CUSTOMERS):
    member = bool(rng.random() < 0.5)
    k = bandit.choose(rows[member])
    paid = PRICES[k] * (rng.random() < buys(member, PRICES[k], t))
    bandit.update(rows[member][k], revenue.inside(paid)[0])
    played[member].append((t, PRICES[k]))
    earned += paid
print(f"{earned / CUSTOMERS:.2f} euros a customer")

# %% compare
for price in PRICES:
    worth = [price * buys(m, price, t) for t in range(CUSTOMERS) for m in (True, False)]
    print(f"always {price}: {np.mean(worth):.2f}")

# %% predict
expected = bandit.predict(rows[True], level=0.95)
low, high = revenue.outside(expected.lower), revenue.outside(expected.upper)
for k, price in enumerate(PRICES):
    print(f"{price} euros to a member brings {low[k]:.1f} to {high[k]:.1f}")

# %% figure
fig, ax = plt.subplots()
for member, name, colour in ((True, "members", "C0"), (False, "others", "C1")):
    t, price = np.array(played[member]).T
    ax.plot(
        t[199:], np.convolve(price, np.full(200, 1 / 200), "valid"), colour, label=name
    )
    best = [
        max(PRICES, key=lambda p: p * buys(member, p, when))
        for when in (0, CUSTOMERS - 1)
    ]
    ax.step(
        [0, CUSTOMERS // 2, CUSTOMERS],
        [best[0], *best],
        colour,
        ls=":",
        label="best price",
    )
ax.set(xlabel="customer", ylabel="price, euros (mean of 200)")
ax.legend()
fig.savefig("prices.svg")

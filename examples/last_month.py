"""What another policy would have earned; docs/gallery/last-month.md explains it."""

# %% log
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from driftbandit import (
    Always,
    AutoDOMD,
    Category,
    Features,
    Log,
    Number,
    Reward,
    evaluate,
)

rng = np.random.default_rng(0)
OFFERS, DAY, VISITS = ["a", "b", "c"], 86_400.0, 6000
START = 1_790_812_800.0  # seconds: the first of October 2026


def chance(age, day):
    """Of a sale, for each offer. After the 20th even the young prefer b."""
    young = np.array([0.5, 0.2, 0.1]) if day < 20 else np.array([0.1, 0.5, 0.1])
    return young if age < 40 else np.array([0.1, 0.2, 0.5])


rows, ages = [], rng.integers(18, 80, VISITS)
for t, age in enumerate(ages.tolist()):
    day = 30 * t / VISITS
    p = (
        np.full(3, 0.15) + 0.55 * np.eye(3)[0]
    )  # the old rule: mostly a, the rest to chance
    k = int(rng.choice(3, p=p))
    sold = int(rng.random() < chance(age, day)[k])
    rows.append((age, OFFERS[k], p[k], p.tolist(), sold, START + day * DAY))
names = ["age", "action", "probability", "probabilities", "reward", "time"]
pl.DataFrame(rows, schema=names, orient="row").write_parquet("october.parquet")

# %% evaluate
log = Log.read(
    "october.parquet",
    {"context": ["age"]},  # the other columns have the usual names
    arms={offer: {"offer": offer} for offer in OFFERS},
    features=Features(context={"age": Number(18, 80)}, arm={"offer": Category(OFFERS)}),
    reward=Reward(0, 1),
)
found = evaluate(log, {"AutoDOMD": AutoDOMD, "always a": Always("a")}, window="3d")
for name, worth in found.values.items():
    print(f"{name}: {worth.estimates['dr'].value:.3f} sales per visit")
print(found.verdict.replace("; ", ";\n"))

# %% figure
fig, ax = plt.subplots()
days = (found.starts - START) / DAY + 1
for name in found.values:
    middle, band = found.curve(name)
    (line,) = ax.plot(days, middle, "o-", label=name)
    ax.fill_between(days, band.low, band.high, color=line.get_color(), alpha=0.15)
truth = [np.mean([chance(age, d - 1)[0] for age in ages]) for d in days]
ax.plot(days, truth, "k:", label="always a, the truth")
ax.set(xlabel="day of October", ylabel="sales per visit", ylim=(0, 0.9))
ax.legend(ncols=3, loc="upper center")
fig.savefig("last_month.svg")

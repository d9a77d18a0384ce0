"""A news page: raw events become a running loop. docs/tutorial.md explains it."""

# %% events
import numpy as np
import polars as pl

from driftbandit import (
    Always,
    Category,
    Features,
    Log,
    Logged,
    Loop,
    Number,
    Reward,
    evaluate,
)

rng = np.random.default_rng(0)
TOPICS = ["sport", "world", "music"]


def visitor():
    """Who comes: age, and the device where it is known."""
    return {
        "age": int(rng.integers(18, 90)),
        "device": [None, "phone", "desktop"][rng.integers(3)],
    }


def clicks(visit, topic, evening):
    """The old like world news, the young music; evenings are for sport."""
    favourite = "sport" if evening else "world" if visit["age"] > 50 else "music"
    return rng.random() < (0.5 if topic == favourite else 0.1)


past = pl.DataFrame(
    [{**visitor(), "topic": TOPICS[rng.integers(3)]} for _ in range(500)]
)
print(past.head(3))

# %% propose
Features.from_sample(past, arm=["topic"], report=print)

# %% declare
features = Features(
    context={"age": Number(18, 90), "device": Category(["phone", "desktop"])},
    arm={"topic": Category(TOPICS)},
)
reward = Reward(0, 1, wait="30min", missing=0)  # no click within half an hour is a 0

# %% decide
arms = {topic: {"topic": topic} for topic in TOPICS}
simulated = {
    "clock": "events",
    "training": "inline",
    "seed": 0,
}  # live: leave these out
loop = Loop("news.db", features=features, reward=reward, exploration=0.2, **simulated)

decision = loop.decide({"age": 34, "device": "phone"}, arms, id="visit 0", at=0)
print(f"{decision.arm}, with probability {decision.probability:.3f}")
print(loop.reward(decision.id, 1, at=300))  # a click after five minutes

# %% run
waiting = []  # clicks on their way: when, and on which decision


def serve(minute, evening=False):
    """Show one visitor something; clicks come in when they are due."""
    now = 60.0 * minute
    for click in [each for each in waiting if each[0] <= now]:
        waiting.remove(click)
        loop.reward(click[1], 1, at=click[0])
    visit = visitor()
    decision = loop.decide(visit, arms, id=f"visit {minute}", at=now)
    clicked = clicks(visit, decision.arm, evening)
    if clicked:
        waiting.append((now + rng.uniform(60, 1200), decision.id))
    return clicked


day = [serve(minute) for minute in range(2, 600, 2)]
first, last = np.mean(day[:60]), np.mean(day[-60:])
print(f"clicks in the first two hours: {first:.0%}, last two: {last:.0%}")

# %% restart
loop.close()
loop = Loop("news.db", training="inline")  # it goes on where it was

# %% change
evening = [serve(minute, evening=True) for minute in range(600, 1200, 2)]
first, last = np.mean(evening[:60]), np.mean(evening[-60:])
print(f"first two hours: {first:.0%}, last two: {last:.0%}")

# %% why
decision = loop.decide({"age": 70, "device": "desktop"}, arms, id="the last", at=72_000)
print(f"{decision.why.arm} rather than {decision.why.runner_up}, because of")
for term, weight in decision.why.terms.items():
    print(f"{term:>14} {weight:+.2f}")

# %% log
log = loop.log()  # a row per decision: arms, probabilities, rewards
print(log.group_by("arm").agg(pl.len(), pl.col("reward").mean()).sort("arm"))
print(loop.audit("visit 78").agrees)  # the probability again, from the log alone
loop.close()

# %% judge
candidates = {"the loop": Logged(), "always sport": Always("sport")}
found = evaluate(Log.read("news.db"), candidates)
for name, value in found.values.items():
    print(f"{name}: {value.estimates['dr'].value:.2f} clicks per visitor")
print(found.verdict.replace("; ", ";\n"))

"""A news page with bayesianbandits; from_bayesianbandits.py is the same with ours."""

# %% program
import pickle
from pathlib import Path

import numpy as np
from bayesianbandits import (
    Arm,
    BayesianGLM,
    ContextualAgent,
    StabilizedForgetting,
    ThompsonSampling,
)

TOPICS = ["sport", "world", "music"]
rng = np.random.default_rng(0)
models = {
    topic: BayesianGLM(alpha=1.0, link="logit", forgetting=StabilizedForgetting(0.99))
    for topic in TOPICS
}
arms = [Arm(topic, learner=model) for topic, model in models.items()]
agent = ContextualAgent(arms, ThompsonSampling(), random_seed=0)

clicks = 0
for _ in range(200):
    age = rng.integers(18, 91)
    X = np.array([[1.0, (age - 54) / 36]])
    (topic,) = agent.pull(X)
    click = rng.random() < (0.5 if topic == ("world" if age > 50 else "music") else 0.1)
    agent.select_for_update(topic).update(X, np.array([int(click)]))
    clicks += click
print(f"{clicks} clicks")
Path("news.pickle").write_bytes(pickle.dumps(agent))

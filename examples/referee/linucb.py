"""A policy for `driftbandit referee`: LinUCB that forgets, JSON lines in and out."""

import json
import sys

import numpy as np

GAMMA, BONUS = 0.99, 0.5
V = b = x = level = (
    None  # level: the discounted mean reward, so that theta need not explain it
)
for line in sys.stdin:
    message = json.loads(line)
    if "arms" in message:
        arms = np.array(message["arms"])
        if V is None:
            V, b = np.eye(arms.shape[1]), np.zeros(arms.shape[1])
        width = np.sqrt(np.einsum("ad,ad->a", arms, np.linalg.solve(V, arms.T).T))
        best = int(np.argmax(arms @ np.linalg.solve(V, b) + BONUS * width))
        x = arms[best]
        print(json.dumps({"arm": best}), flush=True)
    else:
        reward = message["reward"]
        level = reward if level is None else GAMMA * level + (1 - GAMMA) * reward
        V = GAMMA * V + (1 - GAMMA) * np.eye(len(x)) + np.outer(x, x)
        b = GAMMA * b + (reward - level) * x

"""Ask the service of the tutorial's last step: `driftbandit serve news.db --open`."""

# %% ask
from driftbandit import Client

arms = {topic: {"topic": topic} for topic in ("sport", "world", "music")}
with Client("http://127.0.0.1:8100", "loop") as client:
    decision = client.decide({"age": 34, "device": "phone"}, arms, default="sport")
    print(f"{decision.arm}, with probability {decision.probability:.3f}")
    print(client.reward(decision.id, 1))  # counted

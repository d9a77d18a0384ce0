"""Personalizer's own client; with from_personalizer.py only the endpoint changes."""

# %% program
import os

from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from msrest.authentication import CognitiveServicesCredentials

endpoint = os.environ.get("PERSONALIZER", "http://localhost:8000")
client = PersonalizerClient(endpoint, CognitiveServicesCredentials("a key"))

actions = [
    RankableAction(id=t, features=[{"topic": t}]) for t in ("sport", "world", "music")
]
context = [{"age": 34}, {"device": "phone"}]
ranked = client.rank(
    RankRequest(actions=actions, context_features=context, defer_activation=True)
)
print(ranked.reward_action_id)
client.events.activate(ranked.event_id)  # it was shown
client.events.reward(event_id=ranked.event_id, value=1.0)  # and clicked

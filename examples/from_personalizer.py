"""An ASGI app that answers Personalizer's requests with a loop."""

# %% loop
import asyncio
import json
import time
from uuid import uuid4

from driftbandit import Category, Features, Loop, Number, Reward

features = Features(
    context={"age": Number(18, 90), "device": Category(["phone", "desktop"])},
    arm={"topic": Category(["sport", "world", "music"])},
)
WAIT = 600  # seconds: Personalizer's reward wait time, its default reward is `missing`
click = Reward(0, 1, wait=WAIT, missing=0)
loop = Loop("news.db", features=features, reward=click, exploration=0.2, seed=0)
inactive = {}  # events that were not shown yet, and when they were ranked

# %% requests


def merged(parts):
    """Personalizer sends features as a list of objects; here columns have names."""
    return {name: value for part in parts for name, value in part.items()}


def rank(asked):
    event = asked.get("eventId") or uuid4().hex
    allowed = [
        a for a in asked["actions"] if a["id"] not in asked.get("excludedActions", ())
    ]
    arms = {action["id"]: merged(action["features"]) for action in allowed}
    decision = loop.decide(merged(asked.get("contextFeatures", ())), arms, id=event)
    if asked.get("deferActivation"):
        inactive[event] = time.monotonic()
    ranking = [
        {"id": arm, "probability": p} for arm, p in decision.probabilities.items()
    ]
    return 201, {"ranking": ranking, "eventId": event, "rewardActionId": decision.arm}


def reward(event, asked):
    if event not in inactive:
        loop.reward(event, asked["value"])
    return 204, None


def activate(event):
    inactive.pop(event, None)
    return 204, None


def forget_unseen():
    """Cancel what was not activated in time: it was never shown."""
    late = [
        event
        for event, then in inactive.items()
        if time.monotonic() - then > 0.9 * WAIT
    ]
    for event in late:
        loop.cancel(event)
        del inactive[event]


# %% app
def answer(path, body):
    forget_unseen()
    match path.removeprefix("/personalizer/v1.0/").split("/"):
        case ["rank"]:
            return rank(json.loads(body))
        case ["events", event, "reward"]:
            return reward(event, json.loads(body))
        case ["events", event, "activate"]:
            return activate(event)
    return 404, {"error": {"code": "ResourceNotFound", "message": path}}


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError(
            "only HTTP is answered"
        )  # servers then do without start and stop events
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    try:
        status, said = await asyncio.to_thread(answer, scope["path"], body)
    except (ValueError, KeyError) as wrong:
        problem = f"{wrong} is missing" if isinstance(wrong, KeyError) else str(wrong)
        status, said = 400, {"error": {"code": "BadArgument", "message": problem}}
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    content = b"" if said is None else json.dumps(said).encode()
    await send({"type": "http.response.body", "body": content})


# %% try
def post(path, asked):
    """A request without a network."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(asked).encode()}

    async def send(message):
        sent.append(message)

    asyncio.run(
        app({"type": "http", "path": f"/personalizer/v1.0/{path}"}, receive, send)
    )
    return sent[0]["status"], sent[1]["body"].decode()


if __name__ == "__main__":
    asked = {
        "eventId": "visit-1",
        "contextFeatures": [{"age": 34}, {"device": "phone"}],
        "actions": [
            {"id": t, "features": [{"topic": t}]} for t in ("sport", "world", "music")
        ],
        "excludedActions": ["world"],
        "deferActivation": True,
    }
    print(*post("rank", asked))
    print(*post("events/visit-1/activate", {}))
    print(*post("events/visit-1/reward", {"value": 1.0}))
    print(*post("events/visit-1/reward", {"value": "much"}))
    loop.close()

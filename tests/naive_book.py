"""What a list of events trains, position by position, straight from the contract."""

import json


def examples(events, wait, missing):
    """(seq of the decision, position, value) in the order in which they are trained."""
    decisions = [e for e in events if e.kind == "decide"]
    trained = [
        _at_once(events, d, place) if wait == 0 else _in_time(events, d, place, wait, missing)
        for d in decisions
        for place in _places(d)
    ]
    order = sorted((t for t in trained if t), key=lambda t: t[0])
    return [(seq, place, value) for _, seq, place, value in order]


def _payload(event):
    """The JSON as it is stored, without the types of the library."""
    return json.loads(event.data)


def _places(decision):
    k = _payload(decision).get("k")
    return [None] if k is None else list(range(k))


def _said(events, decision):
    return [e for e in events if e.kind in ("reward", "cancel") and e.id == decision.id]


def _about(words, place):
    """Those that say something of this position."""
    return [
        e
        for e in words
        if _payload(e).get("position") == place
        or (e.kind == "cancel" and _payload(e).get("position") is None)
    ]


def _value(event):
    return _payload(event)["value"]


def _at_once(events, decision, place):
    after = _about([e for e in _said(events, decision) if e.seq > decision.seq], place)
    if not after or after[0].kind == "cancel":
        return None
    return (after[0].seq,), decision.seq, place, _value(after[0])


def _date(events, event, until):
    """When something counts as said: a repair before `until` takes what is dated later as of its
    own time."""
    after = [e.at for e in events if e.kind == "repair" and event.seq < e.seq <= until]
    return min([event.at, *after])


def _closing(events, event, wait):
    """What moves the clock beyond the window of an event, with the end of the window."""
    moves = [e for e in events if e.kind in ("advance", "repair") and e.seq > event.seq]
    ends = ((e, _date(events, event, e.seq) + wait) for e in moves)
    return [(e, due) for e, due in ends if e.at >= due]


def _in_time(events, decision, place, wait, missing):
    moves = _closing(events, decision, wait)
    if not moves:
        return None
    closing, due = [moves[0][0]], moves[0][1]
    said = _said(events, decision)
    words = _held(events, decision, said, wait)
    in_time = [e for e in said if e.kind == "cancel" or e.at <= due]
    words = _about(words + [e for e in in_time if decision.seq < e.seq < closing[0].seq], place)
    value = _value(words[-1]) if words and words[-1].kind == "reward" else missing
    if value is None or any(e.kind == "cancel" for e in words):
        return None
    return (closing[0].seq, due, decision.seq, place or 0), decision.seq, place, value


def _held(events, decision, said, wait):
    """What came before the decision and had not waited for too long when the next word came."""
    held, following = [], decision
    for word in reversed([e for e in said if e.seq < decision.seq]):
        if any(e.seq < following.seq for e, _ in _closing(events, word, wait)):
            break
        held, following = [word, *held], word
    return held

"""What a list of events teaches, decision by decision, straight from the contract."""


def lessons(events, wait, missing):
    """(seq of the decision, value) in the order in which they are taught."""
    decisions = [e for e in events if e.kind == "decide"]
    taught = [_at_once(events, d) if wait == 0 else _in_time(events, d, wait, missing)
              for d in decisions]  # fmt: skip
    return [(seq, value) for _, seq, value in sorted(t for t in taught if t)]


def _said(events, decision):
    return [e for e in events if e.kind in ("reward", "cancel") and e.id == decision.id]


def _value(event):
    return event.read()["value"]


def _at_once(events, decision):
    after = [e for e in _said(events, decision) if e.seq > decision.seq]
    if not after or after[0].kind == "cancel":
        return None
    return (after[0].seq,), decision.seq, _value(after[0])


def _in_time(events, decision, wait, missing):
    due = decision.at + wait
    closing = [e for e in events if e.kind == "advance" and e.seq > decision.seq and e.at >= due]
    if not closing:
        return None
    said = _said(events, decision)
    words = _held(events, decision, said, wait)
    words += [e for e in said if decision.seq < e.seq < closing[0].seq]
    value = _value(words[-1]) if words and words[-1].kind == "reward" else missing
    if value is None or any(e.kind == "cancel" for e in words):
        return None
    return (closing[0].seq, due, decision.seq), decision.seq, value


def _held(events, decision, said, wait):
    """What came before the decision and had not waited for too long when the next word came."""
    held, following = [], decision
    for word in reversed([e for e in said if e.seq < decision.seq]):
        between = [e for e in events if e.kind == "advance" and word.seq < e.seq < following.seq]
        if any(e.at >= word.at + wait for e in between):
            break
        held, following = [word, *held], word
    return held

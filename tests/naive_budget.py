"""A budget's price from the whole history of a log, every time anew."""

import math

LEAST, MOST, PAYBACK, SAVED = 1e-5, 2.0, 300, 2.0
KAPPA, FIRST, DEBT = 0.07, 0.12, 1000  # `FIRST` is that of the first rule


def history(loop):
    """Decisions and bills in order: (seq, "decide", costs, choice, bound, price) and (seq, "bill",
    decision's seq, value)."""
    found = []
    for event in loop.ledger.read():
        if event.kind == "decide":
            data = event.read()
            spend = data.spend["cost"]
            arms = [float(arm["cost"]) for arm in data.arms]
            found.append((event.seq, "decide", arms, spend, data.names, data.choices[0]))
        elif event.kind == "metric":
            said = event.read()
            if said.name == "cost" and said.of:
                found.append((event.seq, "bill", said.of, said.value))
    return found


def price_after(events, seq, payback=PAYBACK):
    """The price after the event `seq`: clipped sums of what was over the bound, and of what was
    owed at each decision. Without a `payback` it is the first rule of 0.3."""
    log_price, unit, counted, owed, dearest = None, 1.0, {}, 0.0, 0.0
    kappa = FIRST if payback is None else KAPPA
    top = math.log(MOST) + (kappa * DEBT if payback is None else 0.0)
    for event in events:
        if event[0] > seq:
            break
        paid = 0.0
        if event[1] == "decide":
            own, _, _, spend, _, choice = event
            if log_price is None:
                log_price = math.log(spend.price)
            dearest = max(spend.bound, *spend.costs)
            unit = spend.bound**0.75 * dearest**0.25
            counted[own] = spend.costs[choice]
            step = counted[own] - spend.bound
            paid = 0.0 if payback is None else owed / payback
        else:
            _, _, of, value = event
            step = value - counted[of]
            counted[of] = value
        owed = max(-SAVED * dearest, owed + step) if payback else 0.0
        least = LEAST if payback is None else max(LEAST, 0.003 * spend.bound / dearest)
        log_price = max(math.log(least), log_price + kappa * (step + paid) / unit)
        log_price = min(top, log_price)
    return None if log_price is None else math.exp(min(math.log(MOST), log_price))


def ratio_after(events, seq, arm):
    """What an arm costs for each unit that is stated: all its bills, the older the less. A later
    bill of a decision takes the place of an earlier one, and counts as new."""
    stated = {e[0]: (e[4][e[5]], e[2][e[5]]) for e in events if e[1] == "decide"}
    bills = [e for e in events if e[0] <= seq and e[1] == "bill" and stated[e[2]][0] == arm]
    first = [k for k, e in enumerate(bills) if all(e[2] != b[2] for b in bills[:k])]
    terms, weights = [], []
    for k, (_, _, of, value) in enumerate(bills):
        weight = 0.98 ** sum(j > k for j in first)
        before = [b[3] for b in bills[:k] if b[2] == of]
        terms.append(weight * (value - (before[-1] if before else 0.0)) / stated[of][1])
        weights.append(weight if k in first else 0.0)
    return (1.0 + math.fsum(terms)) / (1.0 + math.fsum(weights))

"""A budget's price from the whole history of a log, every time anew."""

import math

KAPPA, LEAST, MOST, DEBT = 0.12, 1e-5, 2.0, 1000


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


def price_after(events, seq):
    """The price after the event `seq`: clipped sums of what was over the bound."""
    log_price, unit, counted = None, 1.0, {}
    for event in events:
        if event[0] > seq:
            break
        if event[1] == "decide":
            own, _, _, spend, _, choice = event
            if log_price is None:
                log_price = math.log(spend.price)
            unit = spend.bound**0.75 * max(spend.bound, *spend.costs) ** 0.25
            counted[own] = spend.costs[choice]
            step = counted[own] - spend.bound
        else:
            _, _, of, value = event
            step = value - counted[of]
            counted[of] = value
        log_price = max(math.log(LEAST), log_price + KAPPA * step / unit)
        log_price = min(math.log(MOST) + KAPPA * DEBT, log_price)
    return None if log_price is None else math.exp(min(math.log(MOST), log_price))


def ratio_after(events, seq, arm):
    """What an arm costs for each unit that is stated: all its bills, the older the less."""
    stated = {e[0]: (e[4][e[5]], e[2][e[5]]) for e in events if e[1] == "decide"}
    bills = [e for e in events if e[0] <= seq and e[1] == "bill" and stated[e[2]][0] == arm]
    ratios = [value / stated[of][1] for _, _, of, value in bills]
    weights = [0.98**k for k in reversed(range(len(ratios)))]
    total = math.fsum(w * r for w, r in zip(weights, ratios))
    return (1.0 + total) / (1.0 + math.fsum(weights))

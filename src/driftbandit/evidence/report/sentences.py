"""An evaluation in words."""

from __future__ import annotations

from datetime import UTC, datetime

from driftbandit.durations import DAY, HOUR, MINUTE
from driftbandit.estimators import ope
from driftbandit.estimators.formatting import ahead, between, more_rows, number, percent
from driftbandit.evidence.numbers import RECENT, Gap, Numbers, Worth
from driftbandit.evidence.reading.columns import UNTAUGHT

FULL = 0.999  # share of choices that the log must have been able to make


def title(found: Numbers) -> str:
    return f"Evaluation of {', '.join(found.values)}"


def used(found: Numbers) -> str:
    """Return how much of the log counts."""
    return f"{found.rows:,} of {found.log.counts.rows:,} rows were used."


def verdicts(found: Numbers) -> list[str]:
    """A plain verdict for each difference."""
    if found.differences:
        return [_difference(found, gap) for gap in found.differences]
    return [_value(found, name, worth) for name, worth in found.values.items()]


def _value(found: Numbers, name: str, worth: Worth) -> str:
    return (
        f"{name} is worth {number(worth.estimates['dr'].value)}, with {percent(found.level)} "
        f"confidence {between(*worth.sequence)}."
    )


def _difference(found: Numbers, gap: Gap) -> str:
    sure = f"with {percent(found.level)} confidence"
    if gap.better:
        best, other = (gap.first, gap.second)[:: gap.better]
        size = ahead(gap.estimate.value, *gap.sequence)
        rest = _latest(found, gap) + _overspends(best, found.values[best])
        return f"{best} is better than {other} {sure}: {size}.{rest}"
    guess = f"{gap.first} minus {gap.second} is {between(*gap.sequence)} {sure}"
    more = more_rows(gap.rows, gap.fewest, gap.most)
    return f"Cannot say whether {gap.first} or {gap.second} is better: {guess}; {more}."


def _overspends(name: str, worth: Worth) -> str:
    """What speaks against the better one: a reward that budgets do not pay for."""
    return "".join(
        f" But {name} would spend {each.words()} of budget {budget!r}."
        for budget, each in worth.spend.items()
        if each.keeps is False
    )


def _latest(found: Numbers, gap: Gap) -> str:
    """Return what the latest windows say on their own."""
    if len(found.starts) < 2 * RECENT:
        return ""
    since = moment(found, float(found.starts[-RECENT]))
    if gap.recently == gap.better:
        return f" The same holds since {since} alone."
    if gap.recently:
        ends = sorted(map(abs, gap.recent))
        return f" But since {since} it is the other way round, by {between(*ends)}."
    what = f"{gap.first} minus {gap.second} is {between(*gap.recent)}"
    return f" Since {since} alone there is no proof: {what}."


def notes(found: Numbers) -> list[str]:
    """Return what to know, and what to doubt."""
    out = [
        f"{name} ({policy}) learns from this log as it goes: its value is that of the policy "
        "trained on this log."
        for name, policy in found.found.learners.items()
    ]
    if found.found.learners and not found.log.features.context:
        out.append(
            "The log has no context: policies tell only arms apart. If there is one, name its "
            "columns: columns={'context': [...]}, or --column context=age,country."
        )
    check = found.found.check
    if check.doubtful:
        out.append(
            f"The logged probabilities do not fit what was played (p = {check.p:.1g}): "
            f"{check.what} is {check.found:,.4g}, expected {check.expected:,.4g}. Nothing here "
            "can be trusted until that is explained."
        )
    if not found.found.complete and not found.log.least:
        out.append(
            "Only the played arm's probability is known. So effective rows, and intervals for one "
            "look, rest on the weights that happened to be drawn, and intervals at every moment "
            "are wider: log all probabilities, or pass least=, the smallest that any arm has."
        )
    for name, worth in found.values.items():
        out += _doubts(name, worth)
    return out + _rows(found)


def _doubts(name: str, worth: Worth) -> list[str]:
    out = []
    if worth.support < FULL:
        out.append(
            f"{1.0 - worth.support:.1%} of what {name} would play had probability 0 in the log. "
            "There ips counts the worst reward, snips the mean of the rest, and dm and dr only "
            "what the model says. The interval at every moment allows for it, no other does."
        )
    if worth.effective < ope.ENOUGH:
        out.append(
            f"The log tells as much about {name} as {worth.effective:.0f} rows of its own would. "
            f"Below {ope.ENOUGH:g}, intervals for one look are rough: trust those at every moment."
        )
    elif worth.events < ope.FEW:
        out.append(
            f"What {name} would earn rests on about {worth.events:.0f} rows with the rarer "
            f"outcome. Below {ope.FEW:g}, intervals for one look are rough: trust those at every "
            "moment."
        )
    if worth.absent:
        out.append(f"In {worth.absent:,} rows {name} was not on offer: all arms count equally.")
    return out


def _rows(found: Numbers) -> list[str]:
    counts = found.log.counts
    out = counts.sentences()
    biased = {UNTAUGHT["missing"]} | ({UNTAUGHT["open"]} if found.log.reward.wait == 0.0 else set())
    if biased & set(counts.skipped):  # what is open in a window is only the end of the log
        out.append(
            "Values are those of decisions with a reward. If none means 0, or if some rewards take "
            "longer than others, that is a bias: declare Reward(..., wait=, missing=0)."
        )
    if counts.clipped:
        out.append(f"{counts.clipped:,} rewards were out of range and clipped.")
    return out


def moment(found: Numbers, place: float) -> str:
    """The beginning of a window, in words."""
    if not found.found.windows.timed:
        return f"row {place + 1.0:,.0f}"
    width = found.found.windows.width
    at = datetime.fromtimestamp(place, UTC)
    return at.strftime("%Y-%m-%d" if width >= DAY else "%Y-%m-%d %H:%M")


def window(found: Numbers) -> str:
    """The length of the windows, in words."""
    width = found.found.windows.width
    if not found.found.windows.timed:
        return f"{width:,.0f} rows"
    for size, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds")):
        if width >= size:
            return f"{width / size:g} {name if width != size else name[:-1]}"
    return f"{width:g} seconds"

"""What the README and its neighbours say in numbers, from stored results: claims, and the table of
packages."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.tables import stored

DRIFT, FLIP = "drift, S = 3", "flip, S = 3"
LEARNER, NEAREST = "driftbandit AutoDOMD", "bayesianbandits UCB"


class Package(NamedTuple):
    """A package, the learner of it that is measured, and what its documents and sources say of it
    (in the version of docs/peers.md)."""

    name: str
    learner: str
    arms: str  # whether one model reads the features of every arm
    forgets: str
    memory: str  # who chooses how fast
    late: str  # who remembers a decision until its reward comes
    logs: str  # what it can say of a log


PACKAGES = (
    Package("**driftbandit**", "driftbandit AutoDOMD", "yes", "yes", "the learner",
            "the loop, on disk", "IPS, SNIPS, DM, DR, at every moment"),
    Package("bayesianbandits", "bayesianbandits UCB", "yes", "yes", "you", "you, by a token", "no"),
    Package("Vowpal Wabbit", "vowpalwabbit ε-greedy", "yes", "by a constant step", "you", "you",
            "IPS, DR"),
    Package("coba", "coba LinUCB", "yes", "no", "", "you", "IPS, DR"),
    Package("contextualbandits", "contextualbandits LinUCB", "no", "no", "", "you", "replay, DR"),
    Package("MABWiser", "mabwiser LinUCB", "no", "no", "", "you", "by its simulator"),
    Package("river", "river LinUCB", "no", "by smoothing", "you", "you", "replay"),
)  # fmt: skip
SHORT = ["package", "forgets", "how fast is set by", "late rewards are kept by", "regret"]
IN_SHORT = 6  # rows
HEAD = ["package", "one model for all arms", "forgets", "how fast is set by"]
HEAD += ["decisions are kept until their reward by", "what it says of a log"]
HEAD += ["µs per round", f"regret, {DRIFT}", f"regret, {FLIP}"]


def figure(name: str, words: str) -> str:
    """The number that a benchmark stored under a line that begins with these words."""
    for line in stored(name):
        what, measured, *_ = line.values()
        if what.startswith(words):
            return measured
    raise FileNotFoundError(f"{name}.csv of an earlier benchmark, without {words!r}")


def panels(name: str = "panels") -> str:
    """AutoDOMD's regret over that of the best rival in the whole catalogue, in the paper's four
    settings; or over that of the best rival with the same tuning budget."""
    return together([f"{float(x['ratio']):.2f}" for x in stored(name)])


def budget() -> str:
    """The same with tuned rivals: ratios, and which rivals they are to."""
    lines = stored("budget-panels")
    rivals = together(list(dict.fromkeys(x["rival"] for x in lines)))
    return f"{panels('budget-panels')} times that of the best of {lines[0]['rivals']} ({rivals})"


def standing() -> str:
    """Where AutoDOMD is level with the best rival, where it has less regret, and where more, by the
    95 % interval of the ratio."""
    words = ("has the least regret", "is level with", "is behind")
    groups: dict[str, list[str]] = {word: [] for word in words}
    for x in stored("panels"):
        low, high = (float(x[f"ratio_{end}"]) for end in ("low", "high"))
        group = words[0 if high < 1.0 else 2 if low > 1.0 else 1]
        other = "" if group.startswith("has") else f"{x['rival']} "
        groups[group].append(f"{other}in *{x['panel']}*")
    return ", and ".join(f"{group} {together(found)}" for group, found in groups.items() if found)


def together(parts: list[str]) -> str:
    """Join words to a list: a, b and c."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def micros(learner: str) -> str:
    """Choose and update, d = 5, 30 arms."""
    (line,) = (line for line in stored("peers-speed") if line["contender"] == learner)
    cost = float(line["choose_us"]) + float(line["update_us"])
    return f"{cost:.1f}" if cost < 100.0 else f"{cost:.0f}"


def regret(learner: str, world: str) -> str:
    found = (x for x in stored("peers") if (x["contender"], x["world"]) == (learner, world))
    return f"{float(next(found)['mean']):.0f}"


def slower() -> str:
    """How much longer the packages take that people know best."""
    vw, bayes = (
        float(figure("peers-ratios", f"{name} over Bandit"))
        for name in ("vowpalwabbit ε-greedy", "bayesianbandits UCB")
    )
    return (
        f"Vowpal Wabbit takes {vw:.0f} times as long as `DOMD`, bayesianbandits {bayes:.0f} times"
    )


def catalogue() -> str:
    """What the best of 100,000 arms costs, over a plain product."""
    words = "choose of 100,000 arms, d=50, "
    least, most = (float(figure("bench", words + end)) for end in ("theory's", "lambda = 1"))
    return f"{least:.2f} to {most:.2f} times"


def nearest() -> str:
    """AutoDOMD next to bayesianbandits' UCB, tuned: where its regret is less, and its time."""
    words: dict[str, list[str]] = {"less regret": [], "about as much, within 10 %,": [], "more": []}
    for world in dict.fromkeys(line["world"] for line in stored("peers")):
        ratio = float(regret(LEARNER, world)) / float(regret(NEAREST, world))
        words[list(words)[(ratio > 0.9) + (ratio > 1.1)]].append(f"*{world}*")
    parts = (f"{word} in {'; '.join(worlds)}" for word, worlds in words.items() if worlds)
    slower = float(micros(NEAREST)) / float(micros(LEARNER))
    said = ". It has ".join(parts)
    return f"AutoDOMD has {said}. The UCB takes {slower:.0f} times as long as AutoDOMD"


def one_core() -> str:
    """What a loop under load gains when its process is kept on one core."""
    kept, free = (
        float(figure("loop", f"8 threads{where}, 20 arms")) for where in (" on one core", "")
    )
    return f"{kept / free:.1f} times as many"


def warm() -> str:
    """Calling any stored kernel of numba's once, over importing numba."""
    return f"{float(figure('roads', 'any stored kernel')):.1f} times as long as"


def other_methods() -> str:
    """Count the methods AutoDOMD is compared with: the catalogue but itself and the oracle."""
    from driftbandit.policies.catalogue import CATALOGUE

    return str(len(CATALOGUE) - 2)


def short_table() -> list[list[str]]:
    """README's: the nearest packages, and what they differ in most."""
    rows = [
        [p.name, p.forgets, p.memory, p.late, regret(p.learner, FLIP)]
        for p in PACKAGES
        if p.name != "MABWiser"
    ]
    return [SHORT, *rows[:IN_SHORT]]


def packages_table() -> list[list[str]]:
    rows = [HEAD]
    for package in PACKAGES:
        name, learner, *facts = package
        numbers = [micros(learner), regret(learner, DRIFT), regret(learner, FLIP)]
        rows.append([name, *facts, *numbers])
    return rows


SAYS = {
    "panels": panels,
    "standing": standing,
    "budgetpanels": budget,
    "domdround": lambda: f"{micros('driftbandit DOMD, defaults')} µs",
    "autoround": lambda: f"{micros('driftbandit AutoDOMD')} µs",
    "slower": slower,
    "endurance": lambda: figure("bench", "a round at the end of"),
    "catalogue": catalogue,
    "million": lambda: f"{float(figure('fleet', '1000000 updates')):.2f} s",
    "audits": lambda: f"{100 * float(figure('loop', 'share of a log of 3000')):.0f} %",
    "encoding": lambda: f"{float(figure('loop', 'encoding 20 arms')):.0f} µs",
    "nearest": nearest,
    "onecore": one_core,
    "warm": warm,
    "othermethods": other_methods,
}

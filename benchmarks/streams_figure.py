"""Mean reward on the real streams, with intervals, and the tables of docs/streams.md."""

from __future__ import annotations

import json

from benchmarks import tables

HERO = "driftbandit AutoDOMD"


def columns(lines: list[dict[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((line["stream"], line["order"]) for line in lines))


def table() -> str:
    """The figure, and mean rewards in per cent; in bold what is certainly above AutoDOMD."""
    from benchmarks.readme import markdown

    lines = tables.stored("real-streams")
    found = {(x["contender"], x["stream"], x["order"]): x for x in lines}
    places = columns(lines)
    rows = [["learner", *(f"{stream}, {order}" for stream, order in places)]]
    for name in dict.fromkeys(line["contender"] for line in lines):
        rows.append([name, *(_cell(found[(name, *place)]) for place in places)])
    return f"![Mean reward on real streams](results/real-streams.png)\n\n{markdown(rows)}"


def _cell(line: dict[str, str]) -> str:
    better = float(line["difference"]) > float(line["difference_half"])
    text = f"{float(line['mean']):.1f} ± {float(line['half']):.1f}"
    return f"**{text}**" if better and line["contender"] != HERO else text


def settings() -> str:
    """The setting that won on the window before, of everybody who chose."""
    from benchmarks.readme import markdown

    lines = tables.stored("real-streams")
    places = columns(lines)
    rows = [["learner", *(f"{stream}, {order}" for stream, order in places)]]
    won = {(x["contender"], x["stream"], x["order"]): json.loads(x["setting"]) for x in lines}
    for name in dict.fromkeys(line["contender"] for line in lines):
        mine = [won[(name, *place)] for place in places]
        if any(mine):
            texts = [", ".join(f"{k} {v}" for k, v in one.items()) for one in mine]
            rows.append([name, *(text.removeprefix("options ") or "defaults" for text in texts)])
    return markdown(rows)


def draw() -> None:
    """real-streams.png: a panel a stream, a line a learner, both orders."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    stored = tables.stored("real-streams")
    lines = [line for line in stored if line["contender"] != "uniform choice"]
    names = list(dict.fromkeys(line["contender"] for line in lines))
    streams = list(dict.fromkeys(line["stream"] for line in lines))
    fig, axes = plt.subplots(1, len(streams), figsize=(13, 0.33 * len(names) + 1.2), sharey=True)
    for ax, stream in zip(axes, streams):
        _panel(ax, stream, [line for line in lines if line["stream"] == stream], names)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    axes[0].get_yticklabels()[names.index(HERO)].set_fontweight("bold")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower left", ncols=2, frameon=False, fontsize=9)
    fig.supxlabel("mean reward in %, 95 % interval over seeds", fontsize=10)
    fig.tight_layout()
    fig.savefig(tables.RESULTS / "real-streams.png", dpi=130)
    plt.close(fig)


def _panel(ax, stream: str, lines: list[dict[str, str]], names: list[str]) -> None:
    ax.set_title(stream)
    ax.grid(axis="x", lw=0.3, alpha=0.6)
    for order, face, shift in (("time", None, -0.14), ("shuffled", "white", 0.14)):
        mine = {line["contender"]: line for line in lines if line["order"] == order}
        for k, name in enumerate(names):
            mean, half = float(mine[name]["mean"]), float(mine[name]["half"])
            colour = "C3" if name == HERO else "C0" if name.startswith("driftbandit") else "0.35"
            style = {"color": colour, "mfc": face or colour, "ms": 5, "fmt": "o", "lw": 1}
            label = f"in order of {order}" if face is None else order
            shown = {"label": label} if name == HERO else {}
            ax.errorbar(mean, k + shift, xerr=half, **style, **shown)
        hero = float(mine[HERO]["mean"])
        ax.axvline(hero, color="C3", lw=0.7, ls="-" if face is None else ":", alpha=0.6, zorder=0)

"""The command line: each command is a few lines over the public functions."""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from driftbandit.progress import cells_bar
from driftbandit.service import cli
from driftbandit.terminal import show_regrets, show_table

TRAINED = 600.0  # seconds that a batch waits for training
REASONS = 5  # why rows were refused: so many are printed, all are in a file

app = typer.Typer(
    cls=cli.PlainGroup,
    help="Contextual bandits that keep up with a changing world.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path | None, typer.Option("--out", help="Folder; default results/STUDY.")]
Seeds = Annotated[int | None, typer.Option(min=1, max=10**6, help="Seeds instead of its own.")]
Horizon = Annotated[int | None, typer.Option(min=2, max=10**9, help="Rounds in every environment.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; default one per core.")]
Scheduler = Annotated[
    str | None, typer.Option(help='Address of a Dask scheduler, or "local" for a cluster here.')
]

Import = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Module with your own classes; repeat it."),
]


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Contextual bandits that keep up with a changing world."""
    if show:
        from driftbandit import __version__

        print(__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


def reproduce(
    out: Out = None,
    seeds: Seeds = None,
    horizon: Horizon = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and policies: under a minute.")
    ] = False,
) -> None:
    """Play the paper's comparison and write its report."""
    _study("quick" if quick else "paper-figure", out, seeds, horizon, workers, scheduler)


def run(
    study: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped study.")],
    out: Out = None,
    seeds: Seeds = None,
    horizon: Horizon = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    modules: Import = None,
    environments: Annotated[
        str | None, typer.Option(help="Only these, by label or class: A,B,...")
    ] = None,
    policies: Annotated[
        str | None, typer.Option(help="Only these, by label or class: A,B,...")
    ] = None,
) -> None:
    """Run a study or a part of it, or resume it, and write its report."""
    part = {"environments": environments, "policies": policies}
    _study(study, out, seeds, horizon, workers, scheduler, modules, **part)


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study that was run.")],
    out: Out = None,
    reference: Annotated[str | None, typer.Option(help="Policy to take differences to.")] = None,
    policies: Annotated[str | None, typer.Option(help="Show only these: A,B,...")] = None,
    hero: Annotated[str | None, typer.Option(help="Policy to emphasise.")] = None,
    focus: Annotated[
        str | None, typer.Option(help="Draw only these in colour: A,B,...; the first is the hero.")
    ] = None,
    width: Annotated[str, typer.Option(help="Of figures: neurips, icml or full.")] = "full",
    columns: Annotated[
        str | None, typer.Option(help="Of tables: regret,difference,p,...; default all.")
    ] = None,
) -> None:
    """Write tables, figures and an interactive page from stored results; runs nothing."""
    _lab()
    from driftbandit import lab

    split = lab.names_of(folder, policies), lab.names_of(folder, focus)
    asked = [name.strip() for name in (columns or "").split(",") if name.strip()]
    options = {"reference": reference, "hero": hero, "width": width, "columns": asked}
    _show(folder, out, policies=split[0], focus=split[1], **options)


def studies(
    show: Annotated[
        str | None, typer.Option("--show", help="Print the TOML of this study instead.")
    ] = None,
) -> None:
    """List the studies that come with the package."""
    _lab()
    from driftbandit import lab

    if show is not None:
        print(lab.study_text(show), end="")
        return
    for name in lab.shipped():
        print(f"{name:<22} {lab.read_study(name)[0].title}")


def policies(modules: Import = None) -> None:
    """List every policy: paper, what it must know beforehand, cost and memory per round, regret.

    Those of installed plug-ins and of imported modules come last.
    """
    from driftbandit import Policy, Recipe, plugins
    from driftbandit.policies.catalogue import CATALOGUE, Entry

    plugins.load(modules or [], Path.cwd())
    plugins.load_offered("driftbandit.policies")
    rows: list[tuple[str, ...]] = [(line.policy.__name__, *line[1:]) for line in CATALOGUE]
    for kind in Recipe.registry.values():
        if issubclass(kind, Policy) and not kind.__module__.startswith("driftbandit."):
            method = (kind.__doc__ or "").strip().split("\n")[0]
            blank = [""] * (len(Entry._fields) - 3)
            rows.append((kind.__name__, f"plug-in {kind.__module__}", method, *blank))
    show_table("Policies; cost and memory per round", ("name", *Entry._fields[1:]), rows)


def warmup() -> None:
    """Compile everything now and store it, for images and before a service starts."""
    import time

    from driftbandit import DOMD, AutoDOMD, Fleet, Problem
    from driftbandit.core.compiled import cache_folder
    from driftbandit.core.high_dim import LOOPS_BELOW

    begin = time.perf_counter()
    for policy in (DOMD, AutoDOMD):
        for dim in (2, LOOPS_BELOW):
            policy(problem=Problem(dim=dim)).warm()
    fleet = Fleet(DOMD(problem=Problem(dim=2)))
    fleet.update([1], [[0.0, 0.0]], [0])
    del fleet[1]
    print(f"compiled in {time.perf_counter() - begin:.0f} s, stored in {cache_folder()}")


def suite(
    policies: Annotated[
        list[str] | None,
        typer.Argument(help='Policies: classes, "all", or a TOML file with a list of policies.'),
    ] = None,
    name: Annotated[str, typer.Option("--suite", help="Which suite.")] = "suite-1",
    out: Out = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    modules: Import = None,
) -> None:
    """Play a frozen suite of environments and write its card of scores."""
    _lab()
    from driftbandit import plugins
    from driftbandit.lab import Engine
    from driftbandit.lab.report import scorecards
    from driftbandit.lab.run import suite as suites

    plugins.load(modules or [], Path.cwd())
    chosen, folder = suites.read_suite(name), out or Path("results") / "suites"
    engine = Engine(workers=workers, scheduler=scheduler)
    with cells_bar(name) as (progress, _):
        card = suites.run_suite(chosen, policies or ["AutoDOMD"], folder, engine, progress)
    header, *rows = scorecards.score_rows(card)
    show_table(f"{name}: regret over that of playing at random; less is better", header, rows)
    print(f"card: {folder / name}.json")


def compare(
    first: Annotated[Path, typer.Argument(help="A card of `driftbandit suite`.")],
    second: Annotated[Path, typer.Argument(help="Another on the same suite.")],
) -> None:
    """Compare the regrets of two cards, seed by seed."""
    _lab()
    from driftbandit.lab.report import scorecards

    found = scorecards.compare(scorecards.read_card(first), scorecards.read_card(second))
    for one in found if len(found) == 1 else ():
        rows = [(w, f"{a:.0f}", f"{b:.0f}", f"{gap:.1f}") for w, (a, b, gap) in one.worlds.items()]
        show_table("Mean regret", ("world", one.first, one.second, "difference [95 %]"), rows)
    rows = [(c.first, c.second, str(len(c.worlds)), f"{c.overall:.3f}") for c in found]
    header = (
        "first",
        "second",
        "worlds",
        "geometric mean of ratios [95 %], below 1 the first is better",
    )
    show_table("Regret of the first over that of the second", header, rows)


def referee(
    program: Annotated[
        str, typer.Option("--exec", help="The program and its arguments, in one text.")
    ],
    against: Annotated[str, typer.Option(help="Policy to play against.")] = "AutoDOMD",
    name: Annotated[str, typer.Option("--suite", help="Which suite.")] = "suite-3",
    margin: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="More regret that is tolerated: 0.05 is 5 %.")
    ] = 0.05,
    timeout: Annotated[
        float, typer.Option(min=0.01, max=600.0, help="Seconds for one answer.")
    ] = 10.0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Games at once; default one per core.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File for the card of scores.")] = Path(
        "referee.json"
    ),
) -> None:
    """Play any program that speaks JSON lines against a policy, and say KEEP, KILL or CANNOT SAY.

    The exit code is 0 for KEEP, 1 for KILL, 3 for CANNOT SAY, and 2 for wrong input.
    """
    _lab()
    from driftbandit.lab import referee as judge
    from driftbandit.lab.run import suite as suites

    options = {"margin": margin, "timeout": timeout, "workers": workers}
    with cells_bar(name) as (progress, _):
        suite = suites.read_suite(name)
        found = judge.referee(program, against, suite, progress=progress, **options)  # type: ignore[arg-type]
    if found.rows:
        show_table(
            f"{name}, {len(suite.reference)} environments", ("", program, against), found.rows
        )
        suites.write_card(found.card, out)
        print(f"card: {out}")
    print(f"{found.verdict}: {found.why}")
    raise typer.Exit(found.exit_code)


LogPath = Annotated[  # text: a path would spoil postgresql://
    str, typer.Argument(help="Parquet, CSV, JSON lines, dsjson, or a ledger.", metavar="PATH")
]
LoopName = Annotated[str, typer.Option("--name", help="Name of the loop in a ledger.")]
Limits = Annotated[
    str | None, typer.Option("--reward", help="Smallest and largest reward: 0,1 or 0,500.")
]
Named = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OURS=THEIRS",
        help="What a column is called there: reward=clicked, context=age,country; repeat it. "
        "One column as the context: context=age,",
    ),
]
Arms = Annotated[
    str | None,
    typer.Option(
        "--arms",
        metavar="A,B,... or FILE",
        help="Arms of all rows, if the log does not have them: names, or a JSON file of columns "
        "by name.",
    ),
]
Declared = Annotated[
    Path | None, typer.Option(help="JSON file of features; proposed from the first rows if none.")
]


def replay(
    path: LogPath,
    policy: Annotated[
        str | None, typer.Option(help="Policy to train; a loop's own if none.")
    ] = None,
    rejection: Annotated[
        bool, typer.Option(help="Only learn where it would have done the same.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="File for the learner (.npz).")] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    name: LoopName = "loop",
    reward: Limits = None,
    features: Declared = None,
    arms: Arms = None,
    column: Named = None,
    modules: Import = None,
) -> None:
    """Train a policy on a whole log: a warm start for Bandit.load, or an honest learning curve."""
    log = _log(path, name, reward, features, arms, column)
    known = _policies([policy] if policy else [], modules)
    if rejection:
        if scheduler is not None:
            raise ValueError("rejection replay is for one process: leave --scheduler out")
        found = log.rejection(next(iter(known.values()), None))
        mean = f", mean reward {found.curve[-1]:.4g}" if len(found.curve) else ""
        print(f"{len(found.curve):,} of {found.rows:,} rows accepted{mean}")
    else:
        cluster = {"scheduler": scheduler, "workers": workers}
        found = log.replay(next(iter(known.values()), None), **cluster)
        print(f"{found.bandit.policy.name} trained on {found.rows:,} rows; digest {found.digest}")
    print("".join(f"{each}\n" for each in log.counts.sentences()), end="")
    if out:
        found.bandit.save(out)
        print(f"learner: {out}")


def evaluate(
    path: LogPath,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="POLICY", help="Policy to evaluate; default AutoDOMD; repeat it."),
    ] = None,
    always: Annotated[
        list[str] | None, typer.Option(metavar="ARM", help="An arm to play always; repeat it.")
    ] = None,
    over: Annotated[str | None, typer.Option(help="Take differences to this one alone.")] = None,
    window: Annotated[str | None, typer.Option(help="Windows of the curve: 7d, or rows.")] = None,
    level: Annotated[float, typer.Option(help="Confidence.")] = 0.95,
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("evaluation"),
    name: LoopName = "loop",
    reward: Limits = None,
    features: Declared = None,
    arms: Arms = None,
    column: Named = None,
    modules: Import = None,
) -> None:
    """Estimate what other policies would have earned on a log (off-policy evaluation)."""
    _lab()
    from driftbandit import Always, Uniform
    from driftbandit import evaluate as evaluated

    log = _log(path, name, reward, features, arms, column)
    candidates: dict[str, Any] = _policies(policy or ["AutoDOMD"], modules)
    candidates |= {f"always {arm}": Always(arm) for arm in always or ()}
    candidates |= {"uniform": Uniform()}
    options = {"over": over, "window": window, "level": level}
    found = evaluated(log, candidates, progress=True, **options)  # type: ignore[arg-type]
    print("\n".join([*found.verdicts, *(f"- {note}" for note in found.notes)]))
    for written in found.write(out).values():
        print(written)


Table = Annotated[Path, typer.Argument(help="Parquet, CSV, Arrow or JSON lines, by its ending.")]
Mapped = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OURS=THEIRS",
        help="What a column is called there: id=visit, context=age,country; repeat it.",
    ),
]


def decide(
    file: cli.Ledger,
    requests: Table,
    decisions: Table,
    name: LoopName = "loop",
    column: Mapped = None,
) -> None:
    """Decide for every row of a table, and write the decisions.

    What is due is trained first. A command that was interrupted can run again: ids that are
    stored already give the same answers. The exit code is 1 if rows were refused.
    """
    from driftbandit.loop import table_files

    table_files.check_ending(decisions)
    if decisions.absolute() == requests.absolute():
        raise ValueError("decisions need a file of their own: name another than that of requests")
    table, columns = table_files.read(requests), _columns(column or [])
    with cli.opened_loop(file, name) as loop:
        loop.close_windows()
        if not loop.wait_until_trained(TRAINED):
            print("driftbandit: training goes on; decisions use what is learnt", file=sys.stderr)
        found = loop.decide_frame(table, columns=columns, progress=True)
    table_files.write(found.done, decisions)
    print(f"{len(found.done):,} decisions: {decisions}")
    _refusals(found, decisions)


def reward(
    file: cli.Ledger, rewards: Table, name: LoopName = "loop", column: Mapped = None
) -> None:
    """Give the rewards of a table to a loop.

    The same rewards may be given again: the last value counts. The exit code is 1 if rows were
    refused.
    """
    from driftbandit.loop import table_files

    table, columns = table_files.read(rewards), _columns(column or [])
    with cli.opened_loop(file, name) as loop:
        found = loop.reward_frame(table, columns=columns, progress=True)
    results = Counter(found.done["result"].to_list()).most_common()
    told = ", ".join(f"{count:,} {result}" for result, count in results)
    print(f"{len(found.done):,} rewards" + (f": {told}" if told else ""))
    _refusals(found, rewards)


def _refusals(found: Any, path: Path) -> None:
    """Write refused rows beside a table, say why, and end with 1 if there are any."""
    from driftbandit.loop import table_files

    beside = path.with_name(f"{path.stem}.refused.csv")
    if not len(found.refused):
        beside.unlink(missing_ok=True)  # of an earlier run
        return
    table_files.write(found.refused, beside)
    rows = f"{len(found.refused):,} row{'s' if len(found.refused) != 1 else ''}"
    print(f"{rows} refused: {beside}")
    for reason, count in list(found.reasons.items())[:REASONS]:
        print(f"- {count:,}: {reason}")
    raise typer.Exit(1)


def _log(
    path: str,
    name: str,
    reward: str | None,
    features: Path | None,
    arms: str | None,
    column: list[str] | None,
) -> Any:
    """Read a log with what was declared of it."""
    import json

    from driftbandit import Log, Recipe, Reward

    options: dict[str, Any] = {"name": name, "columns": _columns(column or [])}
    if reward is not None:
        try:
            low, high = map(float, reward.split(","))
        except ValueError:
            raise ValueError(f"--reward must be two numbers, as 0,1, got {reward!r}") from None
        options["reward"] = Reward(low, high)
    if features is not None:
        try:
            options["features"] = Recipe.from_dict(json.loads(features.read_bytes()))
        except ValueError as error:
            raise ValueError(f"{features} holds no JSON of features: {error}") from None
    if arms is not None:
        options["arms"] = _arms(arms)
    with _option_names():
        return Log.read(path, **options)


def _arms(given: str) -> Any:
    """Columns by name from a JSON file, or arms that are names alone."""
    import json

    if not given.endswith(".json"):
        return given.split(",")
    try:
        return json.loads(Path(given).read_bytes())
    except ValueError as error:
        raise ValueError(f"--arms: {given} holds no JSON: {error}") from None


@contextmanager
def _option_names() -> Iterator[None]:
    """Name options where an error names arguments of Python."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"columns=\{'(\w+)': [^}]*\}", r"--column \1=...", str(error))
        raise ValueError(re.sub(r"\b(arms|features|name|reward|columns)=", _option, text)) from None


def _option(argument: re.Match[str]) -> str:
    return "--column" if argument[1] == "columns" else f"--{argument[1]}"


def _columns(given: Sequence[str]) -> dict[str, str | list[str]]:
    """Our names of columns, and theirs; a comma puts columns together."""
    found: dict[str, str | list[str]] = {}
    for each in given:
        ours, equals, theirs = each.partition("=")
        if not equals or not theirs.strip(","):
            raise ValueError(f"--column must be ours=theirs, as reward=clicked, got {each!r}")
        found[ours] = [c for c in theirs.split(",") if c] if "," in theirs else theirs
    return found


def _policies(names: Sequence[str], modules: list[str] | None) -> dict[str, Any]:
    """Policies by the names of their classes."""
    from driftbandit import Policy, Recipe, plugins

    plugins.load(modules or [], Path.cwd())
    found = {}
    for name in names:
        kind = Recipe.kinds(name).get(name)
        if kind is None or not issubclass(kind, Policy):
            raise ValueError(f"{name!r} is not a policy: `driftbandit policies` lists them")
        found[name] = kind
    return found


def _study(
    source: str,
    out: Path | None,
    seeds: int | None,
    horizon: int | None,
    workers: int | None,
    scheduler: str | None,
    modules: list[str] | None = None,
    **part: str | None,
) -> None:
    _lab()
    from driftbandit import lab

    changes: dict[str, Any] = {"seeds": seeds, "horizon": horizon, "plugins": modules or ()}
    study, text = lab.read_study(source, **changes, **part)
    folder = out or Path("results") / study.name
    engine = lab.Engine(workers=workers, scheduler=scheduler)
    with cells_bar(study.name) as (progress, say):
        done = lab.execute(study, text, lab.RunStore(folder), engine, progress, say)
    print(f"{study.name}: {counted(*done)}")
    page = folder / "report" / "report.html"
    kept = (folder / name for name in ("study.toml", "current.json"))
    if (
        done.ran
        or not page.exists()
        or page.stat().st_mtime < max(path.stat().st_mtime for path in kept)
    ):
        _show(folder, None)
    else:
        print(f"The report is up to date: {page}")


def counted(ran: int, stored: int) -> str:
    """How many cells were run, in words."""
    if not ran:
        return f"all {stored} cells were stored already"
    return f"{ran} cells run" + (f", {stored} were stored already" if stored else "")


def _show(folder: Path, out: Path | None, **options: Any) -> None:
    from driftbandit import lab

    shown = options.get("reference"), options.get("policies", ())
    show_regrets(lab.finals(lab.RunStore(folder), *shown).to_dicts())
    for name, path in lab.write_report(folder, out, **options).items():
        print(f"{name + ':':<12} {path}")
    print("Open report.html in a browser; load_results(folder) gives the numbers as a frame.")


def _lab() -> None:
    """Say at once, not after the work, that the lab's packages are missing."""
    try:
        import matplotlib  # noqa: F401
        import polars  # noqa: F401
        import pydantic  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{error.name} is missing: install the lab with pip install 'driftbandit[lab]'"
        ) from None


GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Serve": (
        *(cli.demo, cli.serve, cli.mcp, cli.backup, cli.verify, cli.erase, cli.repair),
        warmup,
    ),
    "Decide and evaluate": (decide, reward, evaluate, replay),
    "Research": (reproduce, run, report, studies, policies, suite, compare, referee),
}
for group, members in GROUPS.items():
    for member in members:
        app.command(rich_help_panel=group, cls=cli.PlainCommand)(member)
app.add_typer(cli.api_keys, name="api-keys", rich_help_panel="Serve", cls=cli.PlainGroup)


def show_warning(message: Warning | str, *_: Any) -> None:
    """Warnings are one line, too."""
    print(f"driftbandit: {message}", file=sys.stderr)


def main() -> None:
    """Entry point: errors of the caller are one line, Ctrl-C is quiet."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± is no reason to fail
    warnings.showwarning = show_warning  # type: ignore[assignment]
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        print(f"driftbandit: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:
            print("driftbandit: interrupted; what was finished is stored", file=sys.stderr)
        raise

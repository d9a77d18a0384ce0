"""The reference of the command line, from its commands: `python -m benchmarks.readme`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any


def reference() -> str:
    """Every command with its arguments and options."""
    import typer

    from driftbandit.cli import app

    return "\n\n".join([_groups(), *_lines("driftbandit", typer.main.get_command(app))])


def _groups() -> str:
    """The commands by what they are for."""
    from driftbandit.cli import GROUPS

    rows = (
        f"| {group} | {', '.join(f'`{member.__name__}`' for member in members)} |"
        for group, members in GROUPS.items()
    )
    return "\n".join(["| for | commands |", "|---|---|", *rows])


def _lines(name: str, command: Any) -> Iterator[str]:
    """A command, then those inside it."""
    inside = getattr(command, "commands", {})
    yield f"## `{name}`"
    yield inspect.cleandoc(command.help or "").replace("\b", "")
    yield f"```sh\n{_usage(name, command, inside)}\n```"
    shown = [param for param in command.params if not param.hidden]
    if shown:
        yield "\n".join(["| | |", "|---|---|", *map(_row, shown)])
    for own, each in inside.items():
        yield from _lines(f"{name} {own}", each)


def _usage(name: str, command: Any, inside: Any) -> str:
    arguments = [_spelled(param) for param in command.params if _is_argument(param)]
    options = any(not _is_argument(param) for param in command.params)
    last = ["COMMAND ..."] if inside else []
    return " ".join([name, *arguments, *["[OPTIONS]"] * options, *last])


def _is_argument(param: Any) -> bool:
    return param.param_type_name == "argument"


def _spelled(param: Any) -> str:
    """An argument as help pages write it: FOLDER, [POLICIES]..."""
    name = param.metavar or param.name.upper()
    return (name if param.required else f"[{name}]") + "..." * (param.nargs == -1)


def _row(param: Any) -> str:
    opts = (
        [param.metavar or param.name.upper()]
        if _is_argument(param)
        else [*param.opts, *param.secondary_opts]
    )
    default = param.default if isinstance(param.default, (str, int, float)) else None
    text = (param.help or "").replace("|", "\\|")
    if default is not None and not isinstance(default, bool):
        text += f" Default: `{default}`."
    value = "" if _is_argument(param) or not param.metavar else f" {param.metavar}"
    return f"| {', '.join(f'`{opt}`' for opt in opts)}{value} | {text} |"

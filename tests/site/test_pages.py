"""Code in the README and the pages: run by a test, or read by the program that it calls."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from driftbandit.cli import app

ROOT = Path(__file__).parents[2]
TEXTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
PAGES = [*TEXTS, *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
FIGURES = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*/*.svg"))
FENCE = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", flags=re.M | re.S)
COMMANDS = ("driftbandit", "make", "pip", "python", "curl")
RUN = {
    "python": "tests/site/test_project.py, tests/site/test_site.py",
    "toml": "tests/lab/test_plugins.py, tests/lab/test_five_jobs.py",
    "py": "tests/service/test_openfeature.py (needs a service), tests/lab/test_five_jobs.py",
    "js": "tests/service/test_typescript.py",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def blocks(text):
    """Language and content of every block."""
    return [(kind.strip(), body) for _, kind, body in FENCE.findall(text)]


def commands(text):
    """Lines of a script as words, without comments and without what a here-document holds."""
    text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text, flags=re.M | re.S)
    text = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("\n", " "), text)
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def is_shell(kind, text):
    return kind == "sh" or (kind == "" and text.split(maxsplit=1)[0] in COMMANDS)


def driftbandit(words):
    """The command exists, and so do its options."""
    command = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)}
    lost = [word for word in words if re.match(r"[a-z]", word) and hasattr(command, "commands")]
    return not lost and {word for word in words if word.startswith("--")} <= {"--help", *known}


def make(words):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    return set(words) <= targets


def pip(words):
    """Extras that are asked for can be had."""
    names = re.search(r"\[(.*)\]", words[-1])
    asked = names[1].split(",") if names else []
    return words[0] == "install" and set(asked) <= set(PROJECT["optional-dependencies"])


def python(words):
    """Modules and files are there."""
    if words[0] == "-m" and words[1].startswith("benchmarks"):
        parts = words[1].split(".")
        return any(ROOT.joinpath(*parts[:-1], parts[-1] + end).exists() for end in (".py", ""))
    files = [word for word in words if word.endswith(".py")]
    there = ((ROOT / file).exists() or (ROOT / "examples" / file).exists() for file in files)
    return words[0] in ("-m", "-c", *files) and all(there)


CHECKS = {"driftbandit": driftbandit, "make": make, "pip": pip, "python": python}
CHECKS["curl"] = lambda words: (
    True
)  # tests/service/test_service.py and tests/site/test_site.py send them


def wrong(words):
    """Why a command cannot be run, if so."""
    while re.match(r"\w+=", words[0]):
        words = words[1:]
        if not words:
            return None
    name, rest = Path(words[0]).name, list(words[1:])
    if name not in CHECKS:
        return f"nobody checks {name}"
    return None if not rest or CHECKS[name](rest) else f"{' '.join(words)} cannot be run"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_read(page):
    for kind, text in blocks((ROOT / page).read_text()):
        if is_shell(kind, text):
            assert [fault for words in commands(text) if (fault := wrong(words))] == []
        else:
            known = kind in RUN or kind == "" or kind.startswith("{")
            assert known, f"{page}: nobody runs a block of {kind}"


@pytest.mark.parametrize(
    "line",
    [
        "driftbandit run my.toml --no-such-option",
        "driftbandit no-such-command",
        "make no-such-target",
        "pip install '.[no-such-extra]'",
        "python -m benchmarks.no_such_module",
        "python examples/no_such_file.py",
        "no-such-program",
    ],
)
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong(shlex.split(line))


def test_output_on_a_page_is_filled_in_by_a_command():
    """Where examples are shown, a block that is neither code nor a command is what they print."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        if re.search(r"^<!-- example:", text, flags=re.M):
            bare = re.sub(r"<!-- (?:output|table): .*?<!-- end -->", "", text, flags=re.S)
            typed = [body for kind, body in blocks(bare) if not kind and not is_shell(kind, body)]
            assert typed == [], f"{page}: show it with <!-- output: name cell -->"


WIDE = 88  # characters of code that fit beside the contents of a page


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_code_fits_its_column(page):
    for kind, text in blocks((ROOT / page).read_text()):
        if kind in (*RUN, "sh"):
            assert [line for line in text.splitlines() if len(line) > WIDE] == [], page


# Words of prose.md, rules 1 and 5: people who do not exist, and furniture.
UNNAMED = ("nobody", "somebody", "everybody", "anybody", "whoever")
FURNITURE = ("door", "desk", "clerk", "hatch", "hearing", "luggage", "twin")


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_sentences_name_who_acts(page):
    text = re.sub(r"`[^`\n]*`", "", re.sub(FENCE, "", (ROOT / page).read_text()))
    words = re.findall(r"[a-z]+", text.lower())
    found = [word for word in words if word in UNNAMED or word.rstrip("s") in FURNITURE]
    assert found == [], f"{page}: name the service, the client, the user"


def anchors(text):
    """Headings as code hosts link to them."""
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """Also those that the site does not have: between the README and its neighbours."""
    text = re.sub(FENCE, "", (ROOT / page).read_text())
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" not in target:
            path = (ROOT / page).parent / target if target else ROOT / page
            assert path.exists(), f"{page} links to {target}"
            known = anchors(path.read_text()) if anchor else [anchor]
            assert anchor in known, f"{page} links to {target}#{anchor}"


def test_every_rival_has_its_source():
    from driftbandit.policies.catalogue import CATALOGUE

    known = (ROOT / "docs" / "rivals.bib").read_text()
    ours = ("-", "this library")
    for entry in CATALOGUE:
        if entry.paper not in ours:
            year, first = entry.paper[-4:], entry.paper.split(",")[0]
            found = re.search(rf"author\s*= \{{{first}, [^@]*?year\s*= \{{{year}\}}", known)
            assert found, f"{entry.policy.__name__}: {entry.paper}"


@pytest.mark.parametrize("page", PAGES)
def test_words_after_a_marker_are_markdown(page):
    """A line that begins with a comment is HTML to its end: code and links in it come out raw."""
    lines = re.sub(FENCE, "", (ROOT / page).read_text()).splitlines()
    assert [line for line in lines if re.match(r"\s*<!--.*?-->.*\w", line) and "table:" not in line
            and not re.fullmatch(r"\s*(<!--[^>]*-->\s*)+", line)] == []  # fmt: skip


COLUMN, LEAST = 740.0, 11.0  # pixels: the width of a page's text, and the height of letters
POINT = 4.0 / 3.0  # pixels


@pytest.mark.parametrize("path", FIGURES)
def test_labels_of_figures_can_be_read(path):
    """At the width at which a page shows it, no label of a figure is small; exponents may be."""
    svg = (ROOT / path).read_text()
    wide = float(re.search(r'viewBox="\S+ \S+ (\S+) ', svg)[1])
    scale = min(POINT if re.search(r'<svg[^>]* width="[\d.]+pt"', svg) else 1.0, COLUMN / wide)
    letters = re.findall(r'<text[^>]*font-size(?:: |=")([\d.]+)', svg)
    letters += re.findall(r'<svg[^>]*font-size="([\d.]+)', svg)
    assert letters
    assert min(map(float, letters)) * scale >= LEAST

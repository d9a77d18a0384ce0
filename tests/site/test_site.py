"""The documentation: nothing public is left out, examples run, the site builds and can be read."""

import importlib
import inspect
import json
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from typer.main import get_command

import driftbandit
from browsing import browser, needs_chromium
from driftbandit.cli import app
from serving import Process, until_ready

__all__ = ["browser"]  # a fixture

ROOT = Path(__file__).parents[2]
SERVED = ("ask",)  # examples that need the service of the tutorial
EXAMPLES = sorted({path.stem for path in (ROOT / "examples").glob("*.py")} - {"news", *SERVED})
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.md"))


@pytest.fixture
def names(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("sitemaker.names")


@pytest.fixture(scope="module")
def examples():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("benchmarks.examples")


def commands(path, command):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(f"{path} {name}", inner)


def test_every_public_name_is_on_one_page_of_the_reference(names):
    assert sorted(names.public()) == sorted(driftbandit.__all__)
    wrong = {name: pages for name, pages in names.shown().items() if len(pages) != 1}
    assert wrong == {}, "name its module in a {names} line of one page in docs/api"


def test_every_public_name_and_member_has_a_docstring(names):
    assert list(names.undescribed()) == []


def test_a_method_without_a_docstring_is_found(names, monkeypatch):
    monkeypatch.setattr(driftbandit.Bandit.choose, "__doc__", None)
    assert list(names.undescribed()) == ["driftbandit.Bandit.choose"]


def test_every_command_and_option_is_explained_in_the_reference():
    page = (ROOT / "docs" / "cli.md").read_text()
    sections = dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", page, flags=re.M | re.S))
    for path, command in commands("driftbandit", get_command(app)):
        assert path in sections, f"{path}: run `python -m benchmarks.readme`"
        assert command.help, f"{path} has no help"
        for param in command.params:
            assert param.help, f"{path}: {param.name} has no help"
            for option in (opt for opt in param.opts if opt.startswith("-")):
                assert f"`{option}`" in sections[path], f"{path} {option}: run benchmarks.readme"


def held(examples, name, printed):
    """What is stored is of this code, where a page shows it."""
    if name in examples.shown():
        stored = json.loads(examples.STORED.read_text())[name]
        assert stored["source"] == printed["source"], f"run `python -m benchmarks.examples {name}`"
        assert list(stored) == list(printed)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_and_their_stored_output_is_of_this_code(
    examples, name, tmp_path, monkeypatch
):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # data that are not here stay away
    held(examples, name, examples.run(name, tmp_path))


@pytest.fixture(scope="module")
def tutorial(examples, tmp_path_factory):
    """A folder in which the tutorial was walked through, but for its last step."""
    folder = tmp_path_factory.mktemp("tutorial")
    held(examples, "news", examples.run("news", folder))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_the_tutorial_ends_with_a_service_that_answers(examples, tutorial):
    page = (ROOT / "docs" / "tutorial.md").read_text()
    (script,) = re.findall(r"```sh\n(curl .*?)```", page, flags=re.S)
    served = Process(tutorial, "--open", ledger="news.db")
    until_ready(served.port)
    for code in (["bash", "-ec", script], [sys.executable, "-c", examples.cells("ask")["ask"]]):
        code[-1] = code[-1].replace(":8100", f":{served.port}")
        done = subprocess.run(code, capture_output=True, text=True)
        assert "counted" in done.stdout, done.stdout + done.stderr
    served.stop(signal.SIGINT)


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_a_page_of_the_gallery_has_a_figure_and_all_of_a_short_program(examples, page):
    text, name = page.read_text(), page.stem.replace("-", "_")
    assert f"]({name}.svg)" in text
    assert (page.parent / f"{name}.svg").exists(), f"run `python -m benchmarks.examples {name}`"
    assert re.findall(rf"<!-- example: {name} (\w+) -->", text) == list(examples.cells(name))
    assert name in examples.shown(), "a page shows what the program prints"
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) <= 80


@pytest.mark.parametrize("package", ["bayesianbandits", "vowpalwabbit"])
def test_programs_to_migrate_from_run(examples, package, tmp_path):
    pytest.importorskip(package)
    name = {"vowpalwabbit": "with_vw"}.get(package, f"with_{package}")
    assert "clicks" in examples.run(f"before/{name}", tmp_path)["program"]


class Page(HTMLParser):
    """Text, ids and addresses of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.text = set(), [], [], []
        self.feed(path.read_text())
        self.words = set(re.findall(r"\w+", " ".join(self.text)))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("script", "img", "link", "iframe"):
            self.loaded.append(given.get("src") or given.get("href") or "")

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    out = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-b", "html", "-d", out / "trees"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT / "docs", out / "html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def pages(site):
    return {str(path.relative_to(site)): Page(path) for path in site.rglob("*.html")}


def test_every_page_of_the_folder_is_in_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        if "results" not in page.parts:
            assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists()


def test_docstrings_come_out_whole(names, pages):
    reference = {name: page for name, page in pages.items() if name.startswith("api/")}
    for full, value in names.everything():
        found = [page for page in reference.values() if full in page.ids]
        assert len(found) == 1, full
        missing = set(re.findall(r"\w+", value.__doc__)) - found[0].words
        assert not missing, f"{full}: {missing}"
        for member in names.members(value) if inspect.isclass(value) else ():
            assert not member.text or f"{full}.{member.name}" in found[0].ids
    assert not any("|---" in text for page in reference.values() for text in page.text)


def test_links_of_the_site_lead_somewhere(site, pages):
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            target, _, anchor = link.partition("#")
            path = (site / name).parent / target if target else site / name
            assert path.resolve().exists(), f"{name} links to {link}"
            if anchor and path.suffix == ".html":
                other = pages[str(path.resolve().relative_to(site.resolve()))]
                assert unquote(anchor) in other.ids, f"{name} links to {link}"


def test_the_site_needs_no_network(pages):
    for name, page in pages.items():
        assert not [address for address in page.loaded if "//" in address], name


def test_a_spread_stays_on_the_line_of_its_number(site):
    """Cells of numbers do not wrap; in others, spaces around a ± do not."""
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td(?![^>]*number)[^>]*>(.*?)</td>", page.read_text(), flags=re.S)
        assert [cell for cell in cells if re.search(r"\d ±|± \d", cell)] == [], page.name


WIDTHS = {"phone": 375, "desktop": 1280}


def emulate(browser, width, theme):
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


@needs_chromium
def test_pages_fit_phones_and_desktops_light_and_dark_without_an_error(browser, site, pages):
    """One visit per page: it is read on a phone by night and on a desktop by day."""
    browser.get_log("browser")
    for name in pages:
        emulate(browser, WIDTHS["phone"], "dark")
        browser.get((site / name).as_uri())
        wide, dark = browser.execute_script(
            "return [document.documentElement.scrollWidth, getComputedStyle(document.body)"
            ".backgroundColor]"
        )
        assert wide <= WIDTHS["phone"], name
        emulate(browser, WIDTHS["desktop"], "light")
        wide, light = browser.execute_script(
            "return [document.documentElement.scrollWidth, getComputedStyle(document.body)"
            ".backgroundColor]"
        )
        assert wide <= WIDTHS["desktop"], name
        assert int(re.search(r"\d+", dark)[0]) < 100 < 200 < int(re.search(r"\d+", light)[0])
    assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []


@needs_chromium
def test_the_landing_page_shows_everything_in_ten_seconds(browser, site):
    """Sentence, chart, install line and code on the first screen, and the contents of a page."""
    emulate(browser, WIDTHS["desktop"], "light")
    browser.get((site / "index.html").as_uri())
    ends = browser.execute_script(
        "return [...document.querySelectorAll('article p strong, article img, article pre')]"
        ".slice(0, 4).map(each => [each.tagName, each.getBoundingClientRect().bottom])"
    )
    assert [tag for tag, _ in ends] == ["STRONG", "IMG", "PRE", "PRE"]
    assert max(bottom for _, bottom in ends) <= 800
    browser.get((site / "auto.html").as_uri())
    contents = browser.execute_script(
        "return document.querySelector('.toc-drawer').getBoundingClientRect().toJSON()"
    )
    assert contents["left"] > 900
    assert contents["right"] <= WIDTHS["desktop"]


# Width and letters as code hosts show a README.
HOST = (
    "<meta charset=utf-8><style>body{width:948px;margin:32px;font:16px/1.5 sans-serif}"
    "h1{font-size:2em;margin:0 0 16px}p,pre{margin:0 0 16px}img{max-width:100%}"
    "pre{font-size:13.6px;line-height:1.45;padding:16px}</style>"
)


@needs_chromium
def test_the_readme_shows_everything_in_ten_seconds(browser, tmp_path):
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    text = markdown.render((ROOT / "README.md").read_text())
    page = tmp_path / "readme.html"
    page.write_text(HOST + text.replace('"docs/', f'"{ROOT.as_uri()}/docs/'), encoding="utf-8")
    emulate(browser, WIDTHS["desktop"], "light")
    browser.get(page.as_uri())
    ends = browser.execute_script(
        "return [...document.querySelectorAll('p strong, p > img:not([align]), pre')]"
        ".slice(0, 4).map(each => [each.tagName, each.getBoundingClientRect().bottom])"
    )
    assert [tag for tag, _ in ends] == ["STRONG", "IMG", "PRE", "PRE"]
    assert max(bottom for _, bottom in ends) <= 800


# What people search for, and the pages that answer; one is among the first three hits.
ASKED = {
    "cold start": {"cold-start"},
    "delayed feedback": {"delayed-rewards"},
    "counterfactual": {"evidence", "gallery/last-month"},
    "concept drift": {"auto", "monitoring"},
    "recommendation": {"service", "loop", "gallery", "gallery/catalogue"},
    "quickstart": {"quickstart"},
    "A/B test": {"promotion"},
    "exploration": {"settings"},
    "epsilon": {"settings"},
    "GDPR": {"gdpr"},
    "canary": {"promotion"},
    "hyperparameter": {"settings", "auto"},
    "license": {"index", "when-not"},
    "feature importance": {"feature-importance"},
    "AutoDOMD": {"auto", "api/policies"},
}


@needs_chromium
def test_search_finds_the_words_that_users_type(browser, site):
    from selenium.webdriver.support.ui import WebDriverWait

    hits = (
        "const done = document.querySelector('.search-summary'); return done && "
        "done.textContent.includes('finished') && [...document.querySelectorAll("
        "'ul.search li > a')].map(each => each.href.split('/html/')[1])"
    )
    for words, wanted in ASKED.items():
        browser.get((site / "search.html").as_uri() + f"?q={quote(words)}")
        found = WebDriverWait(browser, 30).until(lambda b: b.execute_script(hits))
        first = list(dict.fromkeys(hit.split(".html")[0] for hit in found))[:3]
        assert wanted & set(first), f"{words}: {first}"

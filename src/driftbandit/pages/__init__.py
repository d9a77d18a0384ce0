"""What pages of the lab, of evaluations and of the dashboard share: frame, colours, style, charts.

`draw.js` draws what charts of all pages have. May import nothing else of driftbandit.
"""

from importlib import resources


def asset(name: str, package: str = "driftbandit.pages") -> str:
    """Return the text of a file that stands in a package, such as page.css."""
    return (resources.files(package) / name).read_text(encoding="utf-8")

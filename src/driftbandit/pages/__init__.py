"""What pages of the lab, of evaluations and of the dashboard share: colours, style, charts."""

from importlib import resources

# The browser itself then refuses to fetch anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def asset(name: str) -> str:
    """Return the text of a file in this folder, such as page.css."""
    return (resources.files("driftbandit.pages") / name).read_text(encoding="utf-8")

"""The dashboard's page, which needs nothing but this service. It holds no data: its script asks for
them with the API key that the user has typed in."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from driftbandit.pages import asset

POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def dashboard(open_access: bool) -> tuple[str, str]:
    """Return the page, and its content security policy, which has hashes of script and style."""
    script = asset("draw.js") + asset("dashboard.js", __package__)
    style = asset("page.css") + asset("dashboard.css", __package__)
    html = asset("dashboard.html", __package__)
    for mark, text in (("access", "open" if open_access else "keys"), ("style", style)):
        html = html.replace(f"{{{{{mark}}}}}", text)
    html = html.replace("{{script}}", script)  # last: what it says is not filled in
    return html, POLICY.format(script=_hash(script), style=_hash(style))


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

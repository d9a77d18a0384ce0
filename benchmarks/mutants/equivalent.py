"""Changes that no test can notice, each with its reason; `*` at the end of a change is any end."""

from __future__ import annotations

REASONS: dict[str, tuple[str, ...]] = {}


def reason(key: str) -> str | None:
    """Why this mutant may live, or None."""
    for why, keys in REASONS.items():
        for known in keys:
            if key == known or (known.endswith("*") and key.startswith(known[:-1])):
                return why
    return None

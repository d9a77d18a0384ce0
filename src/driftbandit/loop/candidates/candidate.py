"""A candidate: a learner beside the live one that is trained on the same examples."""

from __future__ import annotations

from typing import Any

from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import chances
from driftbandit.loop.deciding.types import Request, View, Vote
from driftbandit.loop.exploration import Rule
from driftbandit.loop.learning.key_cache import StoredRows
from driftbandit.loop.learning.keyed import learner_for
from driftbandit.loop.learning.learner import Packing
from driftbandit.loop.state.definition import Shadow
from driftbandit.loop.state.reward_windows import Example
from driftbandit.policies.base import Floats


class Candidate:
    """`seq` is that of the event that declared it."""

    def __init__(self, seq: int, shadow: Shadow, declaration: Declaration) -> None:
        self.seq, self.shadow, self._seed = seq, shadow, declaration.seed_words
        self.learner = learner_for(declaration, shadow.version, seq)
        self.unread = 0  # latest decisions that it could not read

    def rows(self, request: Request) -> Floats | None:
        """Return rows of all arms at every position; None if it cannot read them."""
        features = self.shadow.features
        try:
            return slates.rows(features, slates.read_by(features, request))
        except ValueError:  # a column that it requires is missing, or of another kind
            return None

    def exploration(self, settings: Settings) -> Rule:
        """Return its own, or the loop's."""
        return self.shadow.exploration or settings.exploration

    def vote(self, X: Floats, settings: Settings, request: Request, view: View) -> Vote:
        """Return what it would do with arms X (K, size)."""
        words = (*self._seed, request.id, view.policy)
        rule = self.exploration(settings)
        return Vote(chances(rule, settings, request, view, X, words), view.aged)

    def now(self, X: Floats, settings: Settings, request: Request, at: float) -> Floats:
        """Return what it would do in a decision of that time, with all that it knows now."""
        return self.vote(X, settings, request, self.learner.exact(at, request.key)).p

    def train(self, example: Example, X: Floats | None, choice: int | None) -> None:
        """Learn the example that the live learner learns, from rows (k, K, size) of its own."""
        x = None if X is None or choice is None else X[example.position or 0, choice]
        self.unread = self.unread + 1 if X is None else 0
        self.learner.learn(example, x)

    def declared_by(self, seq: int) -> None:
        """Take notice of the event that has declared it."""
        self.seq = seq
        self.learner.move(seq)

    def state(self, packing: Packing | None = None) -> tuple[dict[str, Any], bytes]:
        """Return a checkpoint, as a learner's."""
        about, state = self.learner.state(packing)
        return about | {"shadow": self.seq, "size": len(state), "unread": self.unread}, state

    def load(self, about: dict[str, Any], state: bytes, stored: StoredRows | None = None) -> None:
        """Go on from a checkpoint."""
        self.learner.load(about, state, self.shadow.version, stored)
        self.unread = about["unread"]

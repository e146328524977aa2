"""Performs workflows in the tests' browser, and keeps what was said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.system.agent_pages import Site, a_pack

from cardsync_agent import clock
from cardsync_agent.browser.find_browser import Found
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.your_turn import Turns, YourTurn
from cardsync_agent.workflow.pack import Pack
from cardsync_agent.workflow.perform import Outcome, StepResult, Tools, perform

chromium = shutil.which("chromium") or shutil.which("google-chrome")


def a_browser(profile: Path) -> SellersBrowser:
    return SellersBrowser(
        Found(Path(chromium or ""), "Chromium", "chromium"), profile, headless=True
    )


QUICK = HumanPace(
    rest_least=0, rest_most=0, element=0.6, optional=0.2, busy_most=3, turn_look=0.05,
    turn_most=5, chance=Random(1),
)  # fmt: skip


@dataclass
class Runner:
    """Performs one workflow of a pack, and keeps what it said."""

    browser: SellersBrowser
    site: Site
    folder: Path
    pace: HumanPace = QUICK
    turns: list[YourTurn | None] = field(default_factory=list)
    on_turn: Callable[[], None] = lambda: None
    steps: list[StepResult] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def _say(self, turn: YourTurn | None) -> None:
        self.turns.append(turn)
        if turn is not None:
            self.on_turn()

    def run(
        self,
        its: Pack,
        values: dict[str, str] | None = None,
        files: dict[str, Path] | None = None,
        repairs: Any = None,
    ) -> Outcome:
        tools = Tools(
            self.browser, its, self.folder / "downloads", self.pace,
            Turns(its, self.pace, self._say, clock.sleep, lambda title, text: None), clock.sleep,
            repairs, self.changes.append, self.steps.append,
        )  # fmt: skip
        return perform(tools, next(iter(its.workflows)), values, files)

    def pack(self, elements: dict[str, Any], *steps: dict[str, Any], **more: Any) -> Pack:
        return a_pack(self.site.origin, elements, list(steps), **more)

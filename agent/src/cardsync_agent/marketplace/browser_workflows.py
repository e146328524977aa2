"""Performs the workflows of the shop's pack in the seller's own browser: repeats workflows that
only read, and reports when the person is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, get_args

import httpx

from cardsync_agent import clock
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.origins import is_allowed
from cardsync_agent.browser.page_pictures import picture
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import Busy, NotOffered, Trouble, YourTurnMissed
from cardsync_agent.browser.your_turn import Turns, YourTurn
from cardsync_agent.client import PersonsTurn, TurnKind
from cardsync_agent.events import Reporter
from cardsync_agent.kept_repairs import KeptRepairs
from cardsync_agent.marketplace import Shot
from cardsync_agent.pace import Stop
from cardsync_agent.repairs import Repairs
from cardsync_agent.step_ends import StepFailed
from cardsync_agent.workflow.pack import Pack, unrecorded
from cardsync_agent.workflow.pack_folder import PackFolder
from cardsync_agent.workflow.perform import Outcome, Tools, perform
from cardsync_agent.workflow.step_repairs import StepRepairs

_TRIES = 3
# If the marketplace asks the agent to wait, a step waits at most this many seconds; it fails at
# once if more of the wait is left.
_LONGEST_WAIT = 900.0
_SLICE = 5.0


@dataclass(frozen=True)
class Site:
    """The shop's marketplace: its name, the language of its pages, and the browser's profile."""

    marketplace: str
    locale: str
    browser: SellersBrowser


@dataclass
class BrowserWorkflows:
    """`repairs` and `between` are set when the agent begins to work: the server's repairs, and the
    function to call between the parts of long work.
    """

    folder: Path
    home: Path
    site: Site
    packs: PackFolder
    say: Reporter
    pace: HumanPace
    stop: Stop
    repairs: Repairs | None = None
    between: Callable[[], None] = lambda: None
    # No workflow may begin before this time, because the marketplace has asked to wait.
    _not_before: float = 0.0
    _turn: YourTurn | None = None
    _used: bool = False
    _pictures: list[Shot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._downloads = self.home / "downloads"

    def begin_cycle(self) -> None:
        """Forget the state of an earlier cycle."""
        self._used, self._pictures = False, []
        self._clear_downloads()

    def turn(self) -> PersonsTurn | None:
        if self._turn is not None and self._turn.kind in get_args(TurnKind):
            return PersonsTurn(cast(TurnKind, self._turn.kind), httpx.URL(self._turn.url).host)
        waits = any(one.state == "proposed" for one in KeptRepairs(self.home).all())
        return PersonsTurn("confirm_repair") if waits else None

    def pack(self) -> Pack:
        """Return the pack. Raises NoPack."""
        return self.packs.in_use(self.site.marketplace, self.site.locale)

    def has(self, name: str) -> bool:
        """Return whether the pack has the workflow, recorded or not."""
        return name in self.pack().workflows

    def lacks(self, name: str) -> str | None:
        """Return what a person must do before the workflow can be used, or None."""
        pack = self.pack()
        known = name in pack.workflows and not unrecorded(pack, name)
        return None if known else to_record(pack, name, self.folder)

    def perform(
        self,
        name: str,
        values: Mapping[str, str] | None = None,
        files: Mapping[str, Path] | None = None,
        *,
        tries: int = _TRIES,
        note_change: Callable[[str], None] = lambda step: None,
    ) -> Outcome:
        """Perform a workflow after the wait that the marketplace asked for. A failed workflow that
        has changed nothing is repeated, up to `tries` times in all. Raises Unfinished, or
        StepFailed if the pack does not have the workflow yet or the wait is long.
        """
        if problem := self.lacks(name):
            raise StepFailed(problem)
        self._used = True
        tools = replace(self._tools(self.pack()), note_change=note_change)
        for attempt in range(1, tries + 1):
            self._wait_as_asked()
            self._clear_downloads()
            try:
                outcome = perform(tools, name, values, files)
            except Trouble as trouble:
                # A person who missed a sign-in must still sign in, so the turn remains, also on the
                # page Today.
                if not isinstance(trouble, YourTurnMissed):
                    self.note_turn(None)
                if isinstance(trouble, Busy):
                    self._not_before = clock.monotonic() + trouble.retry_after
                if trouble.changed or not trouble.may_try_again or attempt == tries:
                    raise Unfinished(trouble) from trouble
                if not isinstance(trouble, Busy):
                    self._pause(2.0 * attempt)
                continue
            self.note_turn(None)
            self._pictures += [Shot(one.content, one.page_url) for one in outcome.pictures]
            return outcome
        raise AssertionError("a workflow is tried at least once")

    def pictures(self, *, of_failure: bool) -> list[Shot]:
        """Return the pictures that workflows made for the log and, for a failed step that used the
        browser, a picture of the tab if it shows the marketplace.
        """
        kept, self._pictures = self._pictures, []
        used, self._used = self._used, False
        if of_failure and used and self.site.browser.is_running():
            page, pack = self.site.browser.page(), self.pack()
            if page.url != "about:blank" and is_allowed(page.url, pack.origins):
                now = picture(page, pack)
                kept.append(Shot(now.content, now.page_url))
        return kept

    def _clear_downloads(self) -> None:
        """Remove downloads of an earlier workflow, which may contain names and streets."""
        for file in self._downloads.glob("*.csv"):
            file.unlink(missing_ok=True)

    def _tools(self, pack: Pack) -> Tools:
        repairs = None
        if self.repairs is not None:
            kept = KeptRepairs(self.home)
            repairs = StepRepairs(pack, self.repairs, kept, str(self.folder))
        turns = Turns(pack, self.pace, self.note_turn, self._pause)
        return Tools(
            self.site.browser, pack, self._downloads, self.pace, turns, self._pause, repairs
        )

    def _wait_as_asked(self) -> None:
        """Wait as the marketplace asked. Raises StepFailed if that takes too long."""
        left = self._not_before - clock.monotonic()
        if left > _LONGEST_WAIT:
            raise StepFailed(f"the marketplace asks to wait {clock.span(left)} more")
        if left > 0:
            self._pause(left)

    def _pause(self, seconds: float) -> None:
        ends = clock.monotonic() + seconds
        while True:
            self.stop.sleep(max(0.0, min(_SLICE, ends - clock.monotonic())))
            self.between()
            if clock.monotonic() >= ends:
                return

    def note_turn(self, turn: YourTurn | None) -> None:
        """Report the person's turn, or with None its end."""
        self._turn = turn
        if turn is None:
            self.say.ended("your_turn")
        else:
            self.say.standing(
                "your_turn", "your_turn", str(turn), problem=True, kind=turn.kind, url=turn.url
            )


class Unfinished(StepFailed):
    """A workflow that ended early. `files` and `places` are as in Outcome. `not_offered` means that
    the page did not offer the option that a named value asked for.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(f"{trouble.workflow.replace('_', ' ')}: {trouble}")
        self.files, self.places = trouble.files, dict(trouble.places)
        self.not_offered = isinstance(trouble, NotOffered)


def to_record(pack: Pack, workflow: str, folder: Path) -> str:
    """Return what a person must do before the workflow can be used."""
    return (
        "nobody has shown the sync app this yet: run `cardsync-agent record --marketplace"
        f" {pack.marketplace} --workflow {workflow} --folder {folder}`"
    )

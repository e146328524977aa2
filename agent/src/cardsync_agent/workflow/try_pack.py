"""Tries a pack on recorded pages in a real browser, and reports for each step how its element was
found and whether its post-condition was satisfied.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from cardsync_agent import clock
from cardsync_agent.browser.find_browser import Found
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import Trouble
from cardsync_agent.browser.your_turn import Turns
from cardsync_agent.workflow.pack import Pack, Step, Wait, Workflow
from cardsync_agent.workflow.perform import StepResult, Tools, perform
from cardsync_agent.workflow.recorded_pages import RecordedPages, read_index

_PACE = HumanPace(rest_least=0.0, rest_most=0.0, element=3.0, optional=0.3, turn_most=0.0)
# Recorded pages answer immediately, so a condition that is not satisfied within this time fails.
_WITHIN = 5
# Nothing of a recorded page may reach the real site.
_ALONE = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",)


def try_pack(
    pack: Pack,
    folder: Path,
    found: Found,
    say: Callable[[StepResult], None],
    *,
    headless: bool = True,
) -> list[str]:
    """Perform every workflow whose elements are recorded; return a sentence for each failed
    workflow. Raises BadPages and NoBrowser.
    """
    index = read_index(folder)
    home = Path(tempfile.mkdtemp(prefix="cardsync-agent-"))
    browser = SellersBrowser(found, home / "browser", headless=headless, flags=_ALONE)
    failures: list[str] = []
    try:
        with RecordedPages(folder, index, pack.origins) as pages:
            here = _at(pack, pages.origin)
            turns = Turns(here, _PACE, lambda turn: None, clock.sleep, lambda title, text: None)
            tools = Tools(browser, here, home / "downloads", _PACE, turns, clock.sleep, on_step=say)
            files = {name: folder / file for name, file in index.files.items()}
            for name in pack.workflows:
                browser.page()  # a missing browser is not a failure of the pack
                try:
                    perform(tools, name, index.values, files)
                except Trouble as trouble:
                    failures.append(f"{name}, {trouble.step}: {trouble}")
    finally:
        browser.quit()
        shutil.rmtree(home, ignore_errors=True)
    return failures


def _at(pack: Pack, origin: str) -> Pack:
    """Return the pack for the recorded pages' address, with short waits."""
    workflows = {
        name: Workflow(tuple(map(_soon, workflow.steps)), workflow.repeat)
        for name, workflow in pack.workflows.items()
    }
    return msgspec.structs.replace(pack, origins=(origin,), workflows=workflows)


def _soon(step: Step) -> Step:
    within = min(step.then.within, _WITHIN)
    step = msgspec.structs.replace(step, then=msgspec.structs.replace(step.then, within=within))
    return msgspec.structs.replace(step, seconds=1) if isinstance(step, Wait) else step


def line_of(result: StepResult) -> str:
    """Describe a step's result for people, in one line."""
    start = f"{result.workflow}  {result.step}  {result.verb}: "
    if result.left_out:
        return start + "left out, since its element is not there"
    found = f"found by {result.found_by}; " if result.found_by else ""
    if result.error is None:
        return start + found + "post-condition holds"
    return start + found + f"FAILED: {result.error}"

"""Finds the element of a step, by the pack's locators or by a repair. A step that imports,
publishes or deletes uses only a repair that a person has confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cardsync_agent.browser.origins import shown
from cardsync_agent.browser.page_pictures import picture
from cardsync_agent.browser.page_snippet import snippet
from cardsync_agent.browser.trouble import ElementLost, Trouble
from cardsync_agent.client import KeyRefused, Lost, Refused, Repair
from cardsync_agent.kept_repairs import KeptRepair, KeptRepairs
from cardsync_agent.repairs import NotFound, Repairs
from cardsync_agent.workflow.locators import Target, description, find_by_css, find_in_menu
from cardsync_agent.workflow.pack import Element, Pack, Upload

if TYPE_CHECKING:
    from playwright.sync_api import Locator as On
    from playwright.sync_api import Page

    from cardsync_agent.workflow.pack import Step

_MOST_SHOWN = 80


@dataclass(frozen=True)
class Repaired:
    """An element that a repair found; the result waits for the step's post-condition."""

    target: Target
    kept: KeptRepair


class StepRepairs:
    """Finds elements by repairs. `folder` is named in the sentence that asks the person."""

    def __init__(
        self, pack: Pack, repairs: Repairs, kept: KeptRepairs, folder: str = "DIR"
    ) -> None:
        self._pack, self._repairs, self._kept, self._folder = pack, repairs, kept, folder

    def send_answers(self) -> None:
        """Report to the server the repairs that a person called wrong."""

        def send(one: KeptRepair) -> None:
            if one.state == "wrong" and one.correction_id:
                self._repairs.did_not_hold(_repair(one), "a person called it wrong")

        self._kept.send_answers(send)

    def known(self, page: Page, workflow: str, step: Step, element: Element) -> Repaired | None:
        """Return the element that an earlier repair finds now."""
        lost = description(element)
        for one in self._kept.usable(workflow, step.name, lost, changes=step.changes):
            on = _look(page, one.found, step, opens=True)
            # The person confirmed the repair by its element's text: another text may be another
            # button.
            if on is not None and (not step.changes or _is_alike(_shows(on), one.shows)):
                return Repaired(Target(on, f'repair {one.number} "{one.found}"'), one)
        return None

    def ask(self, page: Page, workflow: str, step: Step, name: str, missing: str) -> Repaired:
        """Ask the server; raise ElementLost if it has nothing that may be used now."""
        element = self._pack.elements[name]
        lost = Lost(
            workflow, step.name, description(element), shown(page.url),
            snippet(page, self._pack, name, element),
        )  # fmt: skip
        try:
            repair = self._repairs.ask(lost, NotFound(missing), _picture(page, self._pack))
        except KeyRefused:
            raise
        except (NotFound, Refused) as no:
            raise ElementLost(str(no)) from no
        # For a step that a person must confirm, no menu is opened, because its button may do
        # anything.
        on = _look(page, repair.selector, step, opens=not step.changes)
        wrong = self._kept.wrong(workflow, step.name, lost.selector)
        if repair.selector in wrong or (on and any(_is_same(page, on, one) for one in wrong)):
            self._repairs.did_not_hold(repair, "a person called it wrong")
            raise ElementLost(f"{missing}; the only repair is one that you called wrong")
        kept = KeptRepair(
            number=0, workflow=workflow, step=step.name, element=name, lost=lost.selector,
            found=repair.selector, shows=_shows(on), page_url=lost.page_url,
            correction_id=repair.correction_id, confirmed=repair.known,
        )  # fmt: skip
        if on is None:
            self._failed(kept, f"{repair.selector} finds not exactly one visible element")
            raise ElementLost(f"{missing}; the repair failed too: {repair.selector} finds none")
        if step.changes:
            raise ElementLost(self._proposed(kept, missing))
        return Repaired(Target(on, f'repair "{repair.selector}"'), kept)

    def held(self, repaired: Repaired) -> None:
        """Record that the post-condition was satisfied: the repair may be used again."""
        kept = repaired.kept
        kept.state, was_confirmed, kept.confirmed = "used", kept.confirmed, True
        self._kept.note(kept)
        if not was_confirmed:
            self._repairs.held(_repair(kept))

    def did_not_hold(self, repaired: Repaired, error: str) -> None:
        self._failed(repaired.kept, error)

    def _failed(self, kept: KeptRepair, error: str) -> None:
        """Report a failed repair; a confirmed repair waits for the person again."""
        kept.state = "proposed" if kept.state == "confirmed" else "failed"
        self._kept.note(kept)
        self._repairs.did_not_hold(_repair(kept), error)

    def _proposed(self, kept: KeptRepair, missing: str) -> str:
        one = self._kept.note(kept)
        # The text of the page stays on this computer: the command shows it.
        return (
            f"{missing}; it may be {one.found}: `cardsync-agent repairs --folder {self._folder}`"
            f" shows it; if it is right add `--confirm {one.number}`, else `--wrong {one.number}`"
        )


def _repair(kept: KeptRepair) -> Repair:
    return Repair(kept.correction_id, kept.found, known=False)


def _picture(page: Page, pack: Pack) -> Callable[[], bytes] | None:
    try:
        content = picture(page, pack).content
    except Trouble:  # the server can propose without a picture, too
        return None
    return lambda: content


def _look(page: Page, selector: str, step: Step, *, opens: bool) -> On | None:
    if isinstance(step, Upload) or not opens:
        return find_by_css(page, selector, hidden_too=True)
    return find_in_menu(page, selector)


def _is_same(page: Page, on: On, selector: str) -> bool:
    """Return whether a selector also finds this element; an element has many selectors."""
    other = find_by_css(page, selector, hidden_too=True)
    if other is None:
        return False
    return bool(on.evaluate("(el, other) => el === other", other.element_handle()))


def _is_alike(shows: str, confirmed: str) -> bool:
    """Return whether two texts differ only in numbers, as "Publish 20 rows" does each time, or in
    the page's formatting.
    """
    now, then = (re.sub(r"\d+", "0", "".join(text.split())) for text in (shows, confirmed))
    return now.casefold() == then.casefold()


def _shows(on: On | None) -> str:
    if on is None:
        return ""
    text = on.evaluate("(el) => el.innerText || el.getAttribute('aria-label') || ''")
    return " ".join(str(text).split())[:_MOST_SHOWN]

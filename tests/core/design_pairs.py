"""The pairs of the simulated marketplace for the corpus of repairs: an element as the first design
and its pack know it, and the page that had it in a later design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cardsync.agents.repairs import snippet
from cardsync.agents.repairs.snippet import Page
from cardsync_agent.workflow import pack
from marketplace import truth
from marketplace.pages import unmarked

PACK = Path(__file__).parents[2] / "agent" / "packs" / "simulated" / "pack.json"
# What is covered in pictures is never clicked, and on a page many times.
_MASKED = ("buyer_", "account_email")
ELEMENTS = tuple(name for name in truth.ELEMENTS if not name.startswith(_MASKED))
_CHANGES = {
    2: "redesign: ids, classes, names and texts of the second design",
    3: "redesign: menus and cards of the third design",
}
_VERBS = {"press": "click", "write": "fill", "choose": "choose", "check": "check", "file": "choose"}


@dataclass(frozen=True)
class Pair:
    """`before` and `after` have marks; `mark` is the element's."""

    mark: str
    page_url: str
    change: str
    workflow: str
    step: str
    selectors: tuple[str, ...]
    before: str
    after: str


def pairs() -> Iterator[Pair]:
    for element in ELEMENTS:
        before = truth.page(element, 1)
        workflow, step = _used(element) or _guessed(element, before)
        for design in (2, 3):
            gone = element in truth.GONE[design]
            change = "removed: given up by the third design" if gone else _CHANGES[design]
            yield Pair(
                element, truth.address(element), change, workflow, step,
                tuple(_selectors(element, before)), before, truth.page(element, design),
            )  # fmt: skip


@lru_cache
def the_pack() -> pack.Pack:
    return pack.read(PACK.read_bytes())


def _used(element: str) -> tuple[str, str] | None:
    """The workflow and the step of the pack that act on an element."""
    for workflow, flow in the_pack().workflows.items():
        for step in flow.steps:
            if getattr(step, "element", None) == element:
                return workflow, step.name
    return None


def _guessed(element: str, before: str) -> tuple[str, str]:
    """A step for what no workflow of the pack uses."""
    kind = snippet.read(before).elements[_place(snippet.read(before), element)].kind
    return element.partition("_")[0], f"{_VERBS.get(kind or '', 'read')}_{element}"


def _place(page: Page, element: str) -> int:
    [at] = [at for at, one in enumerate(page.elements) if one.attributes.get("mark") == element]
    return at


def _selectors(element: str, before: str) -> Iterator[str]:
    """Each locator as a selector; without a pack's, by id, and by role and name."""
    if (known := the_pack().elements.get(element)) is not None:
        for locator in known.locators:
            if locator.role and locator.name:
                yield f'role={locator.role}[name="{locator.name}"]'
            elif locator.css or locator.text:
                css = locator.css or f"text={locator.text}"
                # The engine of the corpus cannot say whether it finds something.
                if ":has-text" not in css:
                    yield css
        return
    page = snippet.read(unmarked(before))
    at = _place(snippet.read(before), element)
    if of := page.elements[at].attributes.get("id"):
        yield f"#{of}"
    if page.elements[at].kind == "press":
        role = "link" if page.elements[at].tag == "a" else "button"
        yield f'role={role}[name="{page.label(at)}"]'

"""Reads the corpus of repairs (repairs_corpus/README.md) into cases, and judges the repair of each.

An element is marked with `mark` in the page before and in each page after; nothing of a mark is
shown to the repair. A pair is one lost element and one changed page, a case is a pair and one
selector that the workflow may have used, with or without a record of what the element looked like;
or a pair and all that an agent's pack says of the element, written as one selector.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from design_pairs import pairs

from cardsync.agents.repairs import snippet
from cardsync.agents.repairs.lost_element import seen_of
from cardsync.agents.repairs.propose_selector import Gone, LostElement, propose

Way = Literal["selector", "record", "described"]
CORPUS = Path(__file__).parent / "repairs_corpus"
_MARK = re.compile(r' mark="[^"]*"')


@dataclass(frozen=True)
class Case:
    """`mark` names the lost element in the `marked` page; no such element there is an answer, too,
    and so are several.
    """

    site: str
    half: str
    change: str
    mark: str
    lost: LostElement
    marked: str
    way: Way = "selector"

    @property
    def pair(self) -> tuple[str, str, str]:
        return self.site, self.change, self.mark

    @property
    def page(self) -> str:
        return unmarked(self.marked)


@dataclass(frozen=True)
class Outcome:
    """`verdict` is right, wrong, missed (there was an answer) or refused (there was none)."""

    verdict: str
    found: str


def unmarked(page: str) -> str:
    return _MARK.sub("", page)


def cases() -> Iterator[Case]:
    for file in sorted(CORPUS.glob("*.toml")):
        site = tomllib.loads(file.read_text())
        for after in site["after"]:
            yield from _cases_of(file.stem, site, after["change"], _page_of(site, after))
    yield from _cases_of_designs()


def _cases_of_designs() -> Iterator[Case]:
    """The designs of the simulated marketplace (tests/marketplace), written as a half of its own."""
    for pair in pairs():
        step = {
            "mark": pair.mark,
            "name": pair.step,
            "workflow": pair.workflow,
            "selectors": pair.selectors,
        }
        site = {
            "half": "designs", "before": pair.before, "step": [step], "page_url": pair.page_url,
        }  # fmt: skip
        yield from _cases_of("designs", site, pair.change, pair.after)


def _page_of(site: dict[str, Any], after: dict[str, Any]) -> str:
    page: str = after.get("page", site["before"])
    for old, new in after.get("edits", ()):
        assert old in page, (after["change"], old)
        page = page.replace(old, new)
    return page


def _cases_of(name: str, site: dict[str, Any], change: str, page: str) -> Iterator[Case]:
    before, now = snippet.read(unmarked(site["before"])), snippet.read(unmarked(page))
    for step in site["step"]:
        [at] = _places(site["before"], step["mark"])
        seen, lost = seen_of(before, at), False
        common = {"workflow": step["workflow"], "page_url": site.get("page_url", "")}
        for selector in step["selectors"]:
            assert before.selected(selector) in ([], [at]), (name, selector)
            if now.selected(selector):
                # It finds something, so that nobody asks for a repair.
                continue
            lost = True
            ways: list[tuple[Way, dict[str, Any] | None]] = [("selector", None), ("record", seen)]
            for way, told in ways:
                one = LostElement(selector, step["name"], told, **common)
                yield Case(name, site["half"], change, step["mark"], one, page, way)
        if lost:
            one = LostElement(_described(before, at, seen), step["name"], **common)
            yield Case(name, site["half"], change, step["mark"], one, page, "described")


def _described(page: snippet.Page, at: int, seen: dict[str, Any]) -> str:
    """All that a pack's property record says of an element, as the agent sends it; it need not
    select anything.
    """
    element, labels = page.elements[at], page.labels(at)
    of = element.attributes
    shown = page.label(at) if element.tag not in ("input", "select", "textarea") else ""
    label = of.get("aria-label") or next((one for one in labels if one != shown), "")
    names = ("id", "name", "type", "role", "href", "title", "data-testid")
    parts = [element.tag]
    parts += [f"[aria-label={_quoted(label)}]"] if label and shown else []
    parts += [f"[{name}={_quoted(of[name])}]" for name in names if of.get(name)]
    parts += [f".{name}" for name in of.get("class", "").split()]
    parts += [f":has-text({_quoted(shown or label)})"] if shown or label else []
    near = " ".join(seen["around"])
    return (f":has-text({_quoted(near)}) " if near else "") + "".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _places(marked: str, mark: str) -> list[int]:
    elements = snippet.read(marked).elements
    return [at for at, one in enumerate(elements) if one.attributes.get("mark") == mark]


def repaired(case: Case) -> Outcome:
    found = propose(case.page, case.lost)
    truth = _places(case.marked, case.mark)
    if isinstance(found, Gone):
        return Outcome("missed" if len(truth) == 1 else "refused", found.reason)
    same = len(truth) == 1 and snippet.read(case.page).selected(found.selector) == truth
    return Outcome("right" if same else "wrong", found.selector)


@dataclass(frozen=True)
class Counted:
    """The outcomes of some cases."""

    of: Counter[str]

    @property
    def cases(self) -> int:
        return self.of.total()

    @property
    def wrong(self) -> float:
        """The part of all cases."""
        return self.of["wrong"] / self.cases

    @property
    def right(self) -> float:
        """The part of the cases that have an answer; a wrong repair counts as one of those."""
        return self.of["right"] / (self.cases - self.of["refused"])

    def told(self) -> str:
        counts = ", ".join(f"{self.of[v]:,} {v}" for v in ("right", "missed", "refused", "wrong"))
        return f"{counts}: {self.right:.1%} of the answers found, {self.wrong:.2%} of all wrong"


def counted(outcomes: list[tuple[Case, Outcome]]) -> dict[tuple[str, Way], Counted]:
    """By half of the corpus and by what was known of the element."""
    parts: dict[tuple[str, Way], Counter[str]] = {}
    for case, outcome in outcomes:
        for half in (case.half, "all"):
            part = parts.setdefault((half, case.way), Counter())
            part[outcome.verdict] += 1
    return {key: Counted(part) for key, part in parts.items()}

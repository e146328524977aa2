"""Decides whether the post-condition of a step is satisfied. A repair never changes a condition:
the condition's elements are found only by the pack's own locators.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from cardsync_agent.browser.origins import fits, shown
from cardsync_agent.workflow import locators
from cardsync_agent.workflow.figures import figure_of
from cardsync_agent.workflow.pack import Condition, Pack

if TYPE_CHECKING:
    from playwright.sync_api import Page

_HEAD_BYTES = 65_536


def unmet(
    page: Page,
    pack: Pack,
    then: Condition,
    values: Mapping[str, str],
    files: Mapping[str, Sequence[Path]],
) -> str | None:
    """Return a sentence about the part of the condition that is not satisfied, or None."""
    if then.url is not None and not fits(then.url, page.url):
        return f"the page is {shown(page.url)}, and not {then.url}"
    if then.visible is not None and locators.find(page, pack.elements[then.visible]) is None:
        return f"{_words(then.visible)} is not there"
    if then.gone is not None and locators.is_seen(page, pack.elements[then.gone]):
        return f"{_words(then.gone)} is still there"
    if then.file is not None:
        brought = files.get(then.file)
        if not brought:
            return f"there is no file {then.file}"
        if problem := header_problem(brought[-1], then.header):
            return f"the file {then.file} {problem}"
    if then.figure is not None and then.equals is not None:
        return _unequal(page, pack, then.figure, values.get(then.equals))
    return None


def header_problem(file: Path, needed: Sequence[str]) -> str | None:
    """Return why a CSV file does not have these columns, ignoring case and surrounding spaces."""
    there = {name.strip().casefold() for name in first_record(file)}
    missing = [name for name in needed if name.strip().casefold() not in there]
    return f"lacks the columns {', '.join(missing[:5])}" if missing else None


def first_record(file: Path) -> list[str]:
    """Return the column names of a CSV file; empty if it cannot be read."""
    with file.open("rb") as content:
        head = content.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    try:
        return next(csv.reader(io.StringIO(head)), [])
    except csv.Error:
        return []


def _unequal(page: Page, pack: Pack, name: str, wanted: str | None) -> str | None:
    target = locators.find(page, pack.elements[name])
    if target is None:
        return f"{_words(name)} is not there"
    figure = figure_of(target.on.inner_text(), pack.locale)
    try:
        expected = Decimal(wanted or "")
    except InvalidOperation:
        return f"{_words(name)} has nothing to be compared with"
    if figure is None:
        return f"{_words(name)} shows no single number"  # the element's text may name a buyer
    return None if figure == expected else f"{_words(name)} shows {figure}, and not {expected}"


def _words(name: str) -> str:
    return name.replace("_", " ")

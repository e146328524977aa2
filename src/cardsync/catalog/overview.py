"""Describes the catalogs of the installation: each game's source, with the age, size and problems
of its catalog.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from cardsync.catalog import install_state
from cardsync.catalog.catalog_age import is_old
from cardsync.catalog.install_state import ANY_GAME, Install, Version
from cardsync.catalog.product_lines import LABEL_BY_NAME, NAMES
from cardsync.catalog.sources.declared import BY_NAME, Source, of_game
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.kit.struct_rows import Column, Reads, struct_of

State = Literal[
    "not_installed", "imported", "waiting", "running", "installed", "held", "old", "failed"
]


class VersionShown(msgspec.Struct):
    """A version of a catalog that was in use."""

    installed_at: Annotated[str, Reads(rfc3339)]
    """When the version was first loaded"""
    rows: int
    """The number of its printings"""
    left_at: Annotated[str | None, Column("since"), Reads(rfc3339_or_none)]
    """When a person went back from it; null: a newer version replaced it"""


class CatalogShown(msgspec.Struct):
    """The catalog of a game from one source. A game without an installed catalog has the default
    source. `imported` is a catalog from a file.
    """

    game: str
    label: str
    """The marketplace's name of the game"""
    source: str | None
    """The name of the source; null: no source, the catalog must be loaded from a file"""
    source_label: str | None
    """The name of the project that publishes the catalog"""
    home: str | None
    """The source's page"""
    license: str | None
    lacks: str | None
    """The parts that this source lacks; empty: nothing is known to be missing"""
    state: State
    printings: int
    """The number of the game's printings in all catalogs"""
    rows: int
    """The number of printings in the version in use"""
    skipped: int
    """The number of its unreadable records"""
    bytes: int
    """The size of the last download; 0: nothing was downloaded yet"""
    installed_at: str | None
    """When the version in use was first loaded"""
    checked_at: str | None
    """When the source last had nothing newer"""
    failure: str | None
    """Why the newest install failed; the catalog is unchanged"""
    failed_at: str | None
    next_try_at: str | None
    """When a worker tries again"""
    step: str
    """The running step: download, read or write; empty: none"""
    done: int
    """The finished part of the step"""
    total: int
    """The whole step; 0: unknown"""
    others: list[str]
    """The other sources of this game that can be installed"""
    goes_back: bool
    """The requested or running install goes back to the earlier version"""
    earlier: VersionShown | None
    """The previous version, which a person can go back to; null: none is stored"""
    refused: VersionShown | None
    """The version that a person went back from; renewals install only a newer version"""


class AddedFile(msgspec.Struct):
    """A catalog file that a person added. It is listed for a day after it was loaded or failed."""

    name: str
    state: Literal["waiting", "running", "added", "failed"]
    bytes: int
    rows: int
    """The number of loaded printings"""
    skipped: int
    """The number of unreadable records"""
    ended_at: str | None
    failure: str | None
    """Why the file was not loaded; nothing was changed"""
    step: str
    """The running step: download (from the object store), read or write; empty: none"""
    done: int
    """The finished part of the step"""
    total: int
    """The whole step; 0: unknown"""


def added_files(installs: list[Install], now: datetime) -> list[AddedFile]:
    """Return the added files that wait, are being loaded, or ended within the last day, newest
    last. Pure.
    """
    found = [one for one in installs if one.game == ANY_GAME]
    since = now - install_state.FILES_KEPT
    ended = {one.source: one.checked_at or one.failed_at for one in found}
    recent = [one for one in found if one.runs or one.asked_at or _later(ended[one.source], since)]
    recent.sort(key=lambda one: ended[one.source] or now)
    return [_added(one, None if one.asked_at else ended[one.source]) for one in recent]


def _later(at: datetime | None, since: datetime) -> bool:
    return at is not None and at >= since


def _added(one: Install, ended_at: datetime | None) -> AddedFile:
    return struct_of(
        AddedFile,
        one,
        name=one.source.rpartition("/")[2],
        state="running"
        if one.runs
        else "waiting"
        if one.asked_at
        else "failed"
        if one.failure
        else "added",
        ended_at=rfc3339_or_none(ended_at),
        step=one.step.partition(" ")[0] if one.runs else "",
    )


def overview(
    installs: list[Install], counts: dict[str, int], now: datetime, renewal_days: int
) -> list[CatalogShown]:
    """Return the catalogs of every game, in the order of the product lines. Pure."""
    found: list[CatalogShown] = []
    for game in NAMES:
        sources = [source for source in of_game(game) if source.downloads]
        own = [one for one in installs if one.game == game and one.source in BY_NAME]
        for one in own:
            shown = _shown(game, BY_NAME[one.source], counts, sources)
            found.append(_installed(shown, one, now, renewal_days))
        if not any(one.installed_at or one.asked_at or one.runs or one.failure for one in own):
            found.append(_shown(game, sources[0] if sources else None, counts, sources))
    return found


def _shown(
    game: str, source: Source | None, counts: dict[str, int], sources: list[Source]
) -> CatalogShown:
    count = counts.get(game, 0)
    return CatalogShown(
        game,
        LABEL_BY_NAME[game],
        source.name if source else None,
        source.label if source else None,
        source.home if source else None,
        source.licence if source else None,
        source.lacks if source else None,
        "imported" if count else "not_installed",
        count,
        *(0, 0, 0),
        *(None, None, None, None, None),
        "",
        *(0, 0),
        [one.name for one in sources if one is not source],
        False,
        None,
        None,
    )


def _installed(shown: CatalogShown, one: Install, now: datetime, renewal_days: int) -> CatalogShown:
    state: State = (
        "running"
        if one.runs
        else "waiting"
        if one.asked_at and one.next_at is None
        else "failed"
        if one.failure
        else "old"
        if one.checked_at and is_old(one.checked_at, now, renewal_days)
        else "held"
        if one.refused
        else "installed"
        if one.installed_at
        else shown.state
    )
    return msgspec.structs.replace(
        shown,
        state=state,
        rows=one.rows,
        skipped=one.skipped,
        bytes=one.bytes,
        installed_at=rfc3339_or_none(one.installed_at),
        checked_at=rfc3339_or_none(one.checked_at),
        failure=one.failure,
        failed_at=rfc3339_or_none(one.failed_at),
        next_try_at=rfc3339_or_none(one.next_at),
        step=one.step.partition(" ")[0] if one.runs else "",
        done=one.done,
        total=one.total,
        goes_back=one.back and bool(one.runs or one.asked_at),
        earlier=_version(one.earlier),
        refused=_version(one.refused),
    )


def _version(one: Version | None) -> VersionShown | None:
    return struct_of(VersionShown, one) if one else None


NONE_INSTALLED: Final = (
    "no catalog is installed: `cardsync catalog install magic` downloads one, and names of other"
    " games may follow"
)


def listed_lines(found: list[CatalogShown]) -> list[str]:
    """Return the output lines of `cardsync catalog list`."""
    lines = []
    if not any(one.printings for one in found):
        lines.append(NONE_INSTALLED)
    width = max(len(one.game) for one in found)
    for one in found:
        day = (one.checked_at or one.installed_at or "")[:10]
        parts = [
            one.source_label or "no source",
            f"{one.rows or one.printings:,} printings" if one.printings else "",
            f"of {day}" if day else "",
            _STATES[one.state] if one.source else "get a file, `cardsync catalog import` loads it",
            f"license: {one.license}" if one.license else "",
        ]
        lines.append(f"{one.game:<{width}}  {', '.join(part for part in parts if part)}")
        if one.refused:
            lines.append(
                f"{'':<{width}}  went back from the version of {one.refused.installed_at[:10]};"
                f" a newer one is taken, and `cardsync catalog install {one.game}` takes what there is"
            )
        if one.failure:
            lines.append(f"{'':<{width}}  failed {(one.failed_at or '')[:16]}: {one.failure}")
    return lines


_STATES: Final[dict[State, str]] = {
    "not_installed": "not installed",
    "imported": "imported from a file",
    "waiting": "waits for a worker",
    "running": "being installed",
    "installed": "up to date",
    "held": "gone back",
    "old": "old",
    "failed": "the newest try failed",
}

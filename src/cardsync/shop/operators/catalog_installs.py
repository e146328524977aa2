"""Shows the catalogs of the installation, with the listings of the caller's own shop by game, and
requests that a worker installs or renews a catalog, or loads it from a file.

Operators may do this, and so may the owner of the installation's only shop, because such an
installation may have no operator.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.catalog import install_state
from cardsync.catalog.add_catalog_file import key_of, name_of
from cardsync.catalog.catalog_age import old_after
from cardsync.catalog.overview import AddedFile, CatalogShown, added_files, overview
from cardsync.catalog.product_lines import LABEL_BY_NAME
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.catalog.update_times import Updates, choose, updates_of
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store, spool_body

# The maximum characters of a file's name, so that it is short enough even if each character takes
# several bytes.
_NAME_MOST: Final = 60
_FILE: Final = re.compile(r".\.(json|csv)(\.gz|\.xz)?$", re.IGNORECASE)
_ONE_SHOP: Final = f"SELECT {install_state.ONE_SHOP}"
_LISTED: Final = """
    SELECT c.product_line, count(*), count(*) FILTER (WHERE c.match = 'matched')
      FROM card c WHERE c.seller_id = :seller AND NOT c.gone AND c.contribution IS NULL
     GROUP BY c.product_line
"""


class ListedGame(msgspec.Struct):
    """The number of listings of the caller's own shop in one game, and of matched listings."""

    game: str
    listings: int
    """The number of listings of your shop in this game"""
    matched: int
    """The number of listings that are matched to a product of the catalog"""


class CatalogsShown(msgspec.Struct):
    catalogs: list[CatalogShown]
    """The catalog of each game, in the order of the product lines"""
    files: list[AddedFile]
    """The files that were or will be loaded"""
    listed: list[ListedGame]
    """The games of your own shop"""
    renewal_days: int
    """The days after which workers check for a newer catalog; 0 for never"""
    nightly: bool
    """Whether workers check every night at 4:00 AM, in the time zone of the shop that chose this"""
    tell_when_old: bool
    """Whether an old catalog is reported by a notice"""
    old_after_days: int
    """The days after which a catalog is old"""


async def may_install(source: Source, caller: Caller) -> bool:
    """Return whether the caller may decide about catalogs."""
    if caller.identity.operator:
        return True
    is_owner = caller.identity.credential == "session" and caller.role == "owner"
    return is_owner and bool((await rows_of(source)(_ONE_SHOP, {}))[0][0])


async def need_installer(source: Source, caller: Caller) -> None:
    """Check that the caller may decide about catalogs. Raises OperatorRequired."""
    if not await may_install(source, caller):
        raise errors.OperatorRequired


async def listed(source: Source, caller: Caller) -> list[ListedGame]:
    """Return the listings of the caller's own shop by game, the game with the most listings
    first.
    """
    rows = await rows_of(source)(_LISTED, {"seller": caller.seller_id})
    return sorted((ListedGame(*row) for row in rows), key=lambda one: -one.listings)


async def _kept(
    source: Source, caller: Caller, settings: Settings
) -> tuple[list[ListedGame], Updates, list[install_state.Install], dict[str, int]]:
    return await each_of(
        source,
        listed(source, caller),
        updates_of(source, settings),
        install_state.installs(source),
        install_state.counts(source),
    )


async def read_catalogs(
    source: Source, caller: Caller, now: datetime, settings: Settings
) -> CatalogsShown:
    """Return the catalogs, added files and settings of updates. Raises OperatorRequired."""
    await need_installer(source, caller)
    stock, updates, installs, counts = await _kept(source, caller, settings)
    return CatalogsShown(
        overview(installs, counts, now, updates.days),
        added_files(installs, now),
        stock,
        updates.days,
        updates.zone is not None,
        updates.tells,
        old_after(updates.days).days,
    )


async def change_updates(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    now: datetime,
    *,
    nightly: bool | None = None,
    tells: bool | None = None,
) -> bool:
    """Choose whether catalogs are updated every night, and whether an old catalog is reported. None
    does not change a value. Return whether a value changed. Raises OperatorRequired.
    """
    await need_installer(session, caller)
    was = await updates_of(session, settings)
    zone = caller.account.time_zone if nightly else None
    kept = nightly is None or nightly == (was.zone is not None)
    wanted = was._replace(
        zone=was.zone if kept else zone, tells=was.tells if tells is None else tells
    )
    if wanted == was:
        return False
    await choose(session, wanted.zone, wanted.tells)
    when = "every night" if wanted.zone else "as the installation's setting says"
    told = "" if wanted.tells else "; without a notice of old ones"
    summary = f"catalogs are updated {when}{told}"
    note(session, caller, "operator.catalog_updates_changed", summary, now)
    await session.flush()
    return True


async def ask_for(
    session: AsyncSession,
    caller: Caller,
    games: Sequence[str],
    source: str | None,
    now: datetime,
) -> int:
    """Request that workers install or renew the catalogs of games. Return the number of new
    requests.

    Raises OperatorRequired, InvalidPayload.
    """
    await need_installer(session, caller)
    try:
        chosen = [
            (game, one)
            for game in games
            for one in await install_state.sources_for(session, game, source)
        ]
    except CatalogError as e:
        raise errors.InvalidPayload(str(e)) from e
    asked = [
        f"{LABEL_BY_NAME[game]} from {one.label}"
        for game, one in chosen
        if await install_state.ask(session, one, game, now)
    ]
    if asked:
        summary = f"catalogs requested: {', '.join(asked)}"
        note(session, caller, "operator.catalogs_asked", summary, now)
        await session.flush()
    return len(asked)


async def ask_to_go_back(
    session: AsyncSession, caller: Caller, game: str, source: str | None, now: datetime
) -> bool:
    """Request that a worker loads the earlier version of a catalog. Return False if that is already
    requested, or if an install is running. Raises OperatorRequired, InvalidPayload.
    """
    await need_installer(session, caller)
    try:
        one = await install_state.source_to_go_back(session, game, source)
    except CatalogError as e:
        raise errors.InvalidPayload(str(e)) from e
    if not await install_state.ask_back(session, one, game, now):
        return False
    summary = f"last version requested: {LABEL_BY_NAME[game]} from {one.label}"
    note(session, caller, "operator.catalog_back_asked", summary, now)
    await session.flush()
    return True


async def add_file(
    database: Database, caller: Caller, store: Store, name: str, body: AsyncIterable[bytes]
) -> None:
    """Store a catalog's file, which a worker will check and load. Raises OperatorRequired,
    InvalidPayload, PayloadTooLarge.
    """
    async with database.tenant(caller.seller_id) as session:
        await need_installer(session, caller)
    place = f"{uuid.uuid4()}/{_file_name(name)}"
    with store.spool() as (path, file):
        size = await spool_body(file, body, limits.CATALOG_FILE_BYTES, limits.CATALOG_FILE_BYTES)
        if not size:
            raise errors.InvalidPayload("choose a file that is not empty first")
        file.flush()
        await store.write(key_of(place), path)
    now = clock.now()
    async with database.tenant(caller.seller_id) as session:
        await install_state.add_file(session, place, size, now)
        summary = f"catalog file added: {name_of(place)}, {size / 1e6:,.1f} MB"
        note(session, caller, "operator.catalog_file_added", summary, now)


def _file_name(given: str) -> str:
    """Return a valid name for the uploaded file. Raises InvalidPayload."""
    name = re.split(r"[/\\]", given)[-1]
    name = "".join(letter for letter in name if letter.isprintable())[-_NAME_MOST:].lstrip(". ")
    if not _FILE.search(name):
        raise errors.InvalidPayload(
            f"{name or 'The file'} cannot be a catalog: its name must end in .json or .csv"
            " (.gz or .xz after it, if it is packed)"
        )
    return name


class NoCatalog(msgspec.Struct):
    """The games that a shop lists and for which there is no catalog. `games` are the games whose
    catalog can be installed and is not being installed yet.
    """

    listings: int
    games: list[str]
    """The games whose catalog can be installed"""
    missing: list[str]
    """All games of the shop without a catalog"""
    under_way: list[CatalogShown]
    failed: list[CatalogShown]
    may_install: bool


async def without_catalog(
    source: Source, caller: Caller, now: datetime, settings: Settings
) -> NoCatalog | None:
    """Return the games of the caller's shop without a catalog; None if all games have a catalog."""
    stock, updates, installs, counts = await _kept(source, caller, settings)
    kept = {one.game: one for one in stock}
    missing = [
        one
        for one in overview(installs, counts, now, updates.days)
        if one.game in kept and not one.printings
    ]
    if not missing:
        return None
    games = list(dict.fromkeys(one.game for one in missing))
    under_way = [one for one in missing if one.state in ("waiting", "running")]
    busy = {one.game for one in under_way}
    return NoCatalog(
        sum(kept[game].listings for game in games),
        [game for game in games if game not in busy and _source_of(game, missing)],
        games,
        under_way,
        [one for one in missing if one.state == "failed"],
        await may_install(source, caller),
    )


def _source_of(game: str, found: list[CatalogShown]) -> str | None:
    return next((one.source for one in found if one.game == game), None)

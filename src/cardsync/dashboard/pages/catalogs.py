"""The operators' page of card catalogs: the age and the problems of each game's catalog, and the
buttons that install or update a catalog, or load it from a file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from litestar import Response, get
from litestar.datastructures import UploadFile
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.catalog.overview import CatalogShown
from cardsync.dashboard.form_handlers import AROUND_BYTES, again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, back_to, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.shop.operators import catalog_installs
from cardsync.web.forms import Form
from cardsync.web.request import opened, provide_caller, provide_settings, reading

PATH: Final = "/operator/catalogs"
_PIECE: Final = 1 << 20
_BUSY: Final = ("waiting", "running")


@get(PATH)
async def catalogs_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _shown(request, caller, reads)


async def _shown(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
) -> Template:
    settings = provide_settings(request.app.state)
    found = await catalog_installs.read_catalogs(source, caller, clock.now(), settings)
    own = {one.game: one for one in found.listed}
    rows = [one for one in found.catalogs if _is_shown(one, one.game in own)]
    described = {one.game for one in rows if one.printings}
    lacking = [
        one
        for one in rows
        if one.game in own and not one.printings and one.source and one.state not in _BUSY
    ]
    others = [one for one in found.catalogs if one not in rows]
    return show(
        request,
        caller,
        "operator_catalogs.html",
        problem=problem,
        files=found.files,
        rows=rows,
        others=others,
        own=own,
        listings=sum(one.listings for one in found.listed),
        matched=sum(one.matched for one in found.listed),
        lacking=lacking,
        lacking_listings=sum(own[one.game].listings for one in lacking),
        undescribed=sum(one.listings for one in found.listed if one.game not in described),
        printings=sum(one.rows or one.printings for one in rows),
        installed=[one.game for one in rows if one.installed_at],
        renewed=[one.game for one in rows if one.installed_at and not one.refused],
        busy=[one for one in rows if one.state in _BUSY],
        busy_files=[one for one in found.files if one.state in _BUSY],
        found=found,
    )


def _is_shown(one: CatalogShown, is_own: bool) -> bool:
    """Return whether the table shows a game's catalog. Below the table the page offers the games
    that no shop sells and whose catalog is not installed.
    """
    return is_own or one.state != "not_installed"


@post_form(PATH)
async def install_by_form(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Request the catalogs of the games that the form names, from the form's source, or from the
    first source of each game.
    """
    source = form["source"] or None
    asked = await catalog_installs.ask_for(session, caller, form.all("game"), source, clock.now())
    done = message("catalogs_asked", asked) if asked else message("same")
    return back_to(form["back"] or PATH, done)


@post_form(f"{PATH}/updates")
async def change_by_form(
    caller: Caller, form: Form, session: AsyncSession, settings: Settings
) -> Response[str]:
    """Choose when catalogs are updated, and whether the service reports an old one."""
    now, on = clock.now(), {name: bool(form[name]) for name in ("nightly", "tell")}
    changed = await catalog_installs.change_updates(
        session, caller, settings, now, nightly=on["nightly"], tells=on["tell"]
    )
    return back_to(PATH, message("saved" if changed else "same"))


@post_form(f"{PATH}/back")
async def go_back_by_form(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    """Request the previous version of the catalog that the form names, with its source."""
    game, _, source = form["version"].partition("/")
    now = clock.now()
    asked = await catalog_installs.ask_to_go_back(session, caller, game, source or None, now)
    return back_to(PATH, message("catalog_goes_back" if asked else "same"))


async def _installer(request: PageRequest, _: object) -> None:
    """Refuse a caller who may not install catalogs before the file, up to half a gigabyte, is
    received. Raises OperatorRequired.
    """
    caller = provide_caller(request)
    async with opened(request) as session:
        await catalog_installs.need_installer(session, caller)


@post_form(
    f"{PATH}/files",
    UPLOADS,
    guards=[_installer],
    exception_handlers=again(_shown, errors.InvalidPayload, errors.PayloadTooLarge),
    request_max_body_size=limits.CATALOG_FILE_BYTES + AROUND_BYTES,
)
async def add_by_form(
    caller: Caller, form: Form, database: Database, store: Store
) -> Response[str]:
    if form.file is None:
        raise errors.InvalidPayload("choose a catalog file first")
    pieces = _pieces(form.file)
    await catalog_installs.add_file(database, caller, store, form.file.filename, pieces)
    return see(PATH, message("catalog_file_added"))


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(_PIECE):
        yield piece


ROUTES: Final = [catalogs_page, install_by_form, change_by_form, go_back_by_form, add_by_form]

"""The first run from a backup: the set-up page lists the backups of this computer and of the
bucket, and this page shows how far a restore is.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final, NamedTuple

from litestar import Response, get, post
from litestar.response import Template

from cardsync import errors
from cardsync.accounts import first_run, set_up_link
from cardsync.database.session import Database
from cardsync.operations import asked_restore, backup_folder
from cardsync.operations.backup_bucket import Bucket
from cardsync.settings import Settings
from cardsync.web.forms import form_of, go
from cardsync.web.pages import page
from cardsync.web.request import ApiRequest

# The page lists the newest ones; `cardsync restore NAME` takes any.
_LISTED: Final = 12


class OfferedBackup(NamedTuple):
    """A backup with what it holds, as far as that is known here: one that is only in the bucket
    has no figures.
    """

    name: str
    made_at: datetime
    shops: int | None = None
    cards: int | None = None


async def must_be_open(database: Database, settings: Settings, token: str) -> None:
    """Raises NotFound once there is a seller, and CsrfFailed for a stranger."""
    async with database.shared() as session:
        if not await first_run.is_open(session):
            raise errors.NotFound("this installation is already set up; sign in instead")
    if not set_up_link.opens(settings, token):
        raise errors.CsrfFailed(
            "open this page with the link that `cardsync serve` printed; `cardsync set-up-link` prints it again"
        )


async def offered(settings: Settings) -> tuple[list[OfferedBackup], str]:
    """Return the newest backups with a shop, and why the bucket cannot be read ("": it can); none
    where no `serve` would restore them.
    """
    if asked_restore.read(settings.data_dir) is None:
        return [], ""
    return await asyncio.to_thread(_offered, settings)


def _offered(settings: Settings) -> tuple[list[OfferedBackup], str]:
    here = backup_folder.listed(settings.backups_folder)
    found = {
        one.name: OfferedBackup(
            one.name,
            one.manifest.made_at,
            one.manifest.tables.get("seller", 0),
            one.manifest.tables.get("card", 0),
        )
        for one in here
    }
    away, problem = [], ""
    if settings.backup_url:
        try:
            away = Bucket(settings.backup_url).names()
        except errors.CommandError as e:
            problem = str(e)
    for name in away:
        made_at = backup_folder.moment_of(name)
        if made_at is not None and name not in found:
            found[name] = OfferedBackup(name, made_at)
    # A backup of an installation without a shop has nothing to restore.
    useful = [one for one in found.values() if one.shops != 0]
    return sorted(useful, key=lambda one: one.made_at, reverse=True)[:_LISTED], problem


@get("/set-up/restore")
async def restore_page(
    request: ApiRequest, database: Database, settings: Settings
) -> Template | Response[str]:
    token = str(request.query_params.get("token", ""))
    async with database.shared() as session:
        if not await first_run.is_open(session):
            return go("/sign-in")
    await must_be_open(database, settings, token)
    asked = asked_restore.read(settings.data_dir)
    if asked is None or asked.state == "offered":
        return go(_address("/set-up", token))
    seconds = {
        "failed": None,
        "switching": asked_restore.SWITCH_SECONDS,
    }.get(asked.state, asked_restore.RELOAD_SECONDS)
    values: dict[str, Any] = {"asked": asked, "seconds": seconds, "token": token}
    return page("set_up_restore.html", 200, **values)


@post("/set-up/restore")
async def ask_for_restore(
    request: ApiRequest, database: Database, settings: Settings
) -> Response[Any]:
    form = await form_of(request)
    token = form.get("token", "")
    await must_be_open(database, settings, token)
    asked_restore.ask(settings.data_dir, form.get("backup", ""))
    return go(_address("/set-up/restore", token))


def _address(path: str, token: str) -> str:
    return f"{path}?token={token}"

"""The first run from a backup. The set-up page lists the backups on this computer and in the
bucket; this page shows the progress of a restore.
"""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template

from cardsync.operations import requested_restore
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import first_run, set_up_link
from cardsync.web.forms import Form, go, public_form
from cardsync.web.pages import page
from cardsync.web.request import AnyResponse, ApiRequest


async def must_be_open(database: Database, settings: Settings, token: str) -> None:
    """Check that the set-up is open. Raises NotFound once there is a seller, and CsrfFailed without
    the set-up link.
    """
    async with database.shared() as session:
        if not await first_run.is_open(session):
            raise errors.NotFound("this installation is already set up; sign in instead")
    if not set_up_link.opens(settings, token):
        raise errors.CsrfFailed(
            "open this page with the link that `cardsync serve` printed; `cardsync set-up-link` prints it again"
        )


@get("/set-up/restore")
async def restore_page(
    request: ApiRequest, database: Database, settings: Settings
) -> Template | Response[str]:
    token = str(request.query_params.get("token", ""))
    async with database.shared() as session:
        if not await first_run.is_open(session):
            return go("/sign-in")
    await must_be_open(database, settings, token)
    asked = requested_restore.read(settings.data_dir)
    if asked is None or asked.state == "offered":
        return go(_address("/set-up", token))
    seconds = {
        "failed": None,
        "switching": requested_restore.SWITCH_SECONDS,
    }.get(asked.state, requested_restore.RELOAD_SECONDS)
    values: dict[str, object] = {"asked": asked, "seconds": seconds, "token": token}
    return page("set_up_restore.html", 200, **values)


@public_form("/set-up/restore")
async def ask_for_restore(form: Form, database: Database, settings: Settings) -> AnyResponse:
    token = form["token"]
    await must_be_open(database, settings, token)
    requested_restore.ask(settings.data_dir, form["backup"])
    return go(_address("/set-up/restore", token))


def _address(path: str, token: str) -> str:
    return f"{path}?token={token}"

"""HTTP routes for signed-in operators of the installation: the sellers with their plans, the state
of the installation, backups and catalogs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import Router, get, patch, post
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import Parameter
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS, WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.read_json import given_fields
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.shop.limits import OPERATOR_SELLERS
from cardsync.shop.operators import catalog_installs, installation, own_backups, shops
from cardsync.shop.operators.catalog_installs import CatalogsShown
from cardsync.shop.operators.own_backups import BackupsShown
from cardsync.shop.operators.schemas import InstallationShown, Plan, SellerShown, SellersShown
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, ApiRequest, problems

READ = (*BEHIND_A_KEY, errors.SessionRequired, errors.OperatorRequired)
WRITTEN = (*FOR_MEMBERS, errors.OperatorRequired)
Search = Annotated[str, Parameter(max_length=limits.SEARCHED_CHARACTERS)]
FileName = Annotated[str, Parameter(max_length=300)]
PageNumber = Annotated[int, Parameter(ge=1, le=limits.PAGE_MOST)]


class SellerChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields to set. A trial whose end is null does not end."""

    plan: Plan | UnsetType = UNSET
    """The plan that the account has paid for"""
    trial_ends_at: datetime | UnsetType | None = UNSET
    suspended: bool | UnsetType = UNSET
    past_due: bool | UnsetType = UNSET


@get("/sellers", responses=problems(*READ, errors.InvalidPayload))
async def list_sellers(
    caller: Caller,
    session: AsyncSession,
    search: Search = "",
    page: PageNumber = 1,
) -> SellersShown:
    """The sellers whose name or address contains the search, newest first, with their plans and
    switches, but without cards and orders.
    """
    return await shops.shops(session, caller, search, Paging(page, OPERATOR_SELLERS))


@get("/sellers/{seller_id:int}", responses=problems(*READ, errors.NotFound))
async def read_seller(caller: Caller, session: AsyncSession, seller_id: int) -> SellerShown:
    """One seller's plan and switches."""
    return await shops.one_shop(session, caller, seller_id)


@patch(
    "/sellers/{seller_id:int}",
    opt=WRITES,
    responses=problems(*WRITTEN, *WITH_JSON_BODY, errors.NotFound),
)
async def change_seller(
    caller: Caller,
    session: AsyncSession,
    seller_id: int,
    data: SellerChange,
) -> SellerShown:
    """Set a seller's plan or suspend the seller. The change is also an entry of the seller's own
    activity.
    """
    return await shops.change_shop(session, caller, seller_id, given_fields(data), clock.now())


@get("/installation", responses=problems(*READ))
async def read_installation(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> InstallationShown:
    """The state of the installation: product lines, queues with their age, slow SQL statements
    without their values, releases of the agent, imports of the catalog, and backups.
    """
    return await installation.read_installation(session, caller, clock.now(), settings)


@get("/backups", responses=problems(*READ))
async def read_backups(caller: Caller, session: AsyncSession, settings: Settings) -> BackupsShown:
    """The installation's last backup, and the last test of restoring it. The owner of the
    installation's only shop may read this, too.
    """
    found = await own_backups.shown(session, caller, clock.now(), settings)
    if found is None:
        raise errors.OperatorRequired
    return found


@post("/backups", status_code=202, opt=WRITES, responses=problems(*WRITTEN, errors.NotFound))
async def ask_for_backup(caller: Caller, session: AsyncSession, settings: Settings) -> BackupsShown:
    """Request that `cardsync serve` makes a backup now. A second request before the backup ends
    changes nothing. The owner of the installation's only shop may do this, too.
    """
    return await own_backups.ask(session, caller, clock.now(), settings)


class CatalogsAsked(msgspec.Struct, forbid_unknown_fields=True):
    games: Annotated[list[str], msgspec.Meta(min_length=1, max_length=50)]
    """The games whose catalogs are to be installed or renewed"""
    source: str | None = None
    """The source of the catalogs; null for the first source of each game"""


@get("/catalogs", responses=problems(*READ))
async def list_catalogs(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> CatalogsShown:
    """The catalog of each game: source, license, age and counts, and the result of the last
    install. The owner of the installation's only shop may read this, too.
    """
    return await catalog_installs.read_catalogs(session, caller, clock.now(), settings)


@post(
    "/catalogs",
    status_code=202,
    opt=WRITES,
    responses=problems(*WRITTEN, *WITH_JSON_BODY),
)
async def install_catalogs(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: CatalogsAsked,
) -> CatalogsShown:
    """Request that a worker installs or renews catalogs from their sources. A second request before
    the install ends changes nothing. The owner of the installation's only shop may do this, too.
    """
    now = clock.now()
    await catalog_installs.ask_for(session, caller, data.games, data.source, now)
    return await catalog_installs.read_catalogs(session, caller, now, settings)


class CatalogUpdatesChange(msgspec.Struct, forbid_unknown_fields=True):
    """Changes of the updates of catalogs. Fields that are not sent do not change."""

    nightly: bool | UnsetType = UNSET
    """Whether to update every night at 4:00 AM in your shop's zone; false: as the setting says"""
    tell_when_old: bool | UnsetType = UNSET
    """Whether to report an old catalog"""


@patch(
    "/catalogs",
    opt=WRITES,
    responses=problems(*WRITTEN, *WITH_JSON_BODY),
)
async def change_catalog_updates(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: CatalogUpdatesChange,
) -> CatalogsShown:
    """Choose whether catalogs are updated every night, and whether an old catalog is reported. The
    owner of the installation's only shop may do this, too.
    """
    now = clock.now()
    nightly = None if data.nightly is UNSET else data.nightly
    tells = None if data.tell_when_old is UNSET else data.tell_when_old
    await catalog_installs.change_updates(
        session, caller, settings, now, nightly=nightly, tells=tells
    )
    return await catalog_installs.read_catalogs(session, caller, now, settings)


class CatalogToGoBack(msgspec.Struct, forbid_unknown_fields=True):
    game: str
    """The game whose earlier catalog is to be loaded"""
    source: str | None = None
    """The source of the catalog; null for the source whose earlier version is stored"""


@post(
    "/catalogs/back",
    status_code=202,
    opt=WRITES,
    responses=problems(*WRITTEN, *WITH_JSON_BODY),
)
async def go_back_to_catalog(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: CatalogToGoBack,
) -> CatalogsShown:
    """Request that a worker loads the previous version of a catalog again. Renewals then skip the
    current version, and install only a newer version. The owner of the installation's only shop may
    do this, too.
    """
    now = clock.now()
    await catalog_installs.ask_to_go_back(session, caller, data.game, data.source, now)
    return await catalog_installs.read_catalogs(session, caller, now, settings)


class _CatalogFile(Operation):
    def __post_init__(self) -> None:
        text = Schema(type=OpenAPIType.STRING, content_media_type="application/octet-stream")
        self.request_body = RequestBody(
            required=True,
            description="The file itself, at most 500 MB. No Content-Type is needed.",
            content={"application/octet-stream": OpenAPIMediaType(schema=text)},
        )


@post(
    "/catalogs/files",
    status_code=202,
    opt=UPLOADS,
    operation_class=_CatalogFile,
    request_max_body_size=limits.CATALOG_FILE_BYTES + 1,
    responses=problems(*WRITTEN, errors.PayloadTooLarge, errors.InvalidPayload),
)
async def add_catalog_file(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    name: FileName = "",
) -> CatalogsShown:
    """Upload a catalog's file, JSON or CSV. A worker checks and loads the file; an invalid file
    changes nothing. The owner of the installation's only shop may do this, too.
    """
    await catalog_installs.add_file(database, caller, store, name, request.stream())
    async with database.tenant(caller.seller_id) as session:
        return await catalog_installs.read_catalogs(session, caller, clock.now(), settings)


router = Router(
    path="/operator",
    route_handlers=[
        list_sellers,
        read_seller,
        change_seller,
        read_installation,
        read_backups,
        ask_for_backup,
        list_catalogs,
        install_catalogs,
        change_catalog_updates,
        go_back_to_catalog,
        add_catalog_file,
    ],
    tags=["operator"],
)

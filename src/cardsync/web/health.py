"""Reports the service's health to operators. `/healthz` answers while the process runs; `/readyz`
reports whether the systems that it needs are available.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

import msgspec
import structlog
from litestar import Response, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import patience, sealed
from cardsync.platform import clock
from cardsync.platform.database import connections, seller_slots
from cardsync.platform.database.migrate import head_revision
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.web.request import ApiRequest

log = structlog.get_logger(__name__)

# Several probes may ask, and each check writes to the object store, which costs money. So one
# result serves all probes of a few seconds.
STORE_STATE_SECONDS = 3


class Health(msgspec.Struct):
    status: Literal["ok"]
    """ok while the service runs"""


class Readiness(msgspec.Struct):
    status: Literal["ok", "unavailable"]
    """ok if all checks are ok"""
    checks: dict[str, str]
    """The result of each check, by the name of the check"""


@get("/healthz", tags=["health"])
async def healthz() -> Health:
    """Report that the process runs."""
    return Health("ok")


@get(
    "/readyz",
    tags=["health"],
    responses={
        503: ResponseSpec(Readiness, description="Something is missing", generate_examples=False)
    },
)
async def readyz(
    request: ApiRequest,
    database: Database,
    settings: Settings,
    exclude: Annotated[
        Literal["object_store"] | None,
        QueryParameter(description="A check that makes no 503, for probes of a balancer"),
    ] = None,
) -> Response[Readiness]:
    """Check the database, its migrations, the queue and the object store; a 503 has the failed
    checks. A schema that a newer program has migrated counts as ready, because releases are
    replaced one host after another.
    """
    patience.allow(request.scope, patience.POLLED, settings)
    # The checks end a little before the request's time limit, so that the answer can name a check
    # that hangs.
    seconds = settings.polled_seconds * 0.8
    database_checks, store_check = await asyncio.gather(
        _database_checks(database, seconds),
        _store_check(request.app.state.store_health, seconds),
    )
    checks = {**database_checks, "object_store": store_check}
    ready = all(state == "ok" for name, state in checks.items() if name != exclude)
    return Response(
        Readiness("ok" if ready else "unavailable", checks),
        status_code=200 if ready else 503,
    )


class StoreHealth:
    """Whether the object store accepts writes. One request at a time checks it, at most every few
    seconds.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Lock()
        self._state = "unavailable"
        self._good_until = 0.0

    async def state(self) -> str:
        async with self._turn:
            if clock.monotonic() >= self._good_until:
                self._state = await self._ask()
                self._good_until = clock.monotonic() + STORE_STATE_SECONDS
            return self._state

    async def _ask(self) -> str:
        try:
            await self._store.check()
        except Exception as e:
            log.warning("object_store_away", kind=type(e).__name__)
            return "unavailable"
        return "ok"


async def _store_check(health: StoreHealth, seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return await health.state()
    except TimeoutError:
        log.warning("object_store_away", kind="TimeoutError")
        return "unavailable"


async def _database_checks(database: Database, seconds: float) -> dict[str, str]:
    checks = dict.fromkeys(("database", "role", "migrations", "queue"), "unavailable")
    at = asyncio.get_running_loop().time() + seconds
    seller_slots.asked_by(seller_slots.HEALTH)
    try:
        # `connections.until` ends a statement in time; `asyncio.timeout_at` ends a wait for a
        # connection.
        with connections.until(connections.Deadline(at)):
            async with asyncio.timeout_at(at + 0.1), database.shared() as session:
                bypass = await session.scalar(
                    text(
                        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
                    )
                )
                checks["database"] = "ok"
                checks["role"] = (
                    "bypasses row-level security" if bypass else await _seal_check(session)
                )
                revision = await session.scalar(text("SELECT version_num FROM alembic_version"))
                is_there = revision is not None and revision >= head_revision()
                checks["migrations"] = "ok" if is_there else "behind"
                await session.execute(text("SELECT 1 FROM procrastinate_jobs LIMIT 1"))
                checks["queue"] = "ok"
    except Exception as e:
        log.warning("database_not_ready", kind=type(e).__name__)
    return checks


async def _seal_check(session: AsyncSession) -> str:
    try:
        known = await sealed.is_known(session)
    except OSError:
        return "the secret key cannot be written"
    return "ok" if known else "SECRET_KEY is not the one that the database was migrated with"

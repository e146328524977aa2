"""For operators: `/healthz` says the process lives, `/readyz` says what it depends on is there."""

from __future__ import annotations

import msgspec
import structlog
from litestar import Response, get
from litestar.openapi.datastructures import ResponseSpec
from sqlalchemy import text

from cardsync.db import Database
from cardsync.migrate import head_revision
from cardsync.storage import Store

log = structlog.get_logger(__name__)


class Health(msgspec.Struct):
    status: str


class Readiness(msgspec.Struct):
    status: str
    checks: dict[str, str]


@get("/healthz", tags=["health"])
async def healthz() -> Health:
    """The process answers."""
    return Health("ok")


@get(
    "/readyz",
    tags=["health"],
    responses={503: ResponseSpec(Readiness, description="Something is missing", generate_examples=False)},
)
async def readyz(database: Database, store: Store) -> Response[Readiness]:
    """Database, migrations, queue and object store; 503 names what is missing."""
    checks = {**await _database_checks(database), "object_store": await _store_check(store)}
    ready = all(state == "ok" for state in checks.values())
    return Response(Readiness("ok" if ready else "unavailable", checks), status_code=200 if ready else 503)


async def _store_check(store: Store) -> str:
    try:
        await store.check()
    except Exception as e:
        log.warning("object_store_away", kind=type(e).__name__)
        return "unavailable"
    return "ok"


async def _database_checks(database: Database) -> dict[str, str]:
    checks = dict.fromkeys(("database", "role", "migrations", "queue"), "unavailable")
    try:
        async with database.shared() as session:
            bypass = await session.scalar(
                text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
            )
            checks["database"] = "ok"
            checks["role"] = "bypasses row-level security" if bypass else "ok"
            revision = await session.scalar(text("SELECT version_num FROM alembic_version"))
            checks["migrations"] = "ok" if revision == head_revision() else "behind"
            await session.execute(text("SELECT 1 FROM procrastinate_jobs LIMIT 1"))
            checks["queue"] = "ok"
    except Exception as e:
        log.warning("database_not_ready", kind=type(e).__name__)
    return checks

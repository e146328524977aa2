"""The JSON structs of the installation for its operators, and the functions that fill them.
Pure.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from cardsync.clock import rfc3339
from cardsync.operators.installation import (
    AgentRelease,
    GameLine,
    Imported,
    Installation,
    Statement,
    Stream,
)
from cardsync.operators.shops import Shop


class SellerShown(msgspec.Struct):
    """`leaves_at` is when an account is removed whose owner asked to delete it."""

    id: int
    name: str
    email: str
    created_at: str
    members: int
    plan: str
    trial_ends_at: str | None
    suspended: bool
    past_due: bool
    sync_mode: str
    product_lines: list[str]
    last_sync_at: str | None
    leaves_at: str | None


class SellersShown(msgspec.Struct):
    sellers: list[SellerShown]
    total: int
    page: int
    total_pages: int


class LineShown(msgspec.Struct):
    name: str
    label: str
    category_id: int
    products: int


class QueueShown(msgspec.Struct):
    """`waiting` counts the sellers whose work is due, and `oldest_seconds` is how long the longest
    of them has waited; `resting` counts those whose work was put back for a while.
    """

    stream: str
    waiting: int
    oldest_seconds: int
    resting: int
    put_back: int


class JobsShown(msgspec.Struct):
    waiting: int
    running: int
    failed: int


class StatementShown(msgspec.Struct):
    """`calls` is zero for a statement that runs now; else `seconds` is the mean of its calls. No
    value is in `statement`.
    """

    seconds: float
    calls: int
    state: str
    statement: str


class ReleaseShown(msgspec.Struct):
    product: str
    version: str
    platform: str
    channel: str
    percentage: int
    published_at: str
    expires_at: str
    killed: bool


class CatalogImportShown(msgspec.Struct):
    source: str
    rows: int
    added: int
    changed: int
    vanished: int
    skipped: int
    finished_at: str


class InstallationShown(msgspec.Struct):
    """The state of the installation. `unknown_lines` says whether a label that no line has becomes
    a line of the account that uploads it.
    """

    lines: list[LineShown]
    unknown_lines: bool
    queues: list[QueueShown]
    jobs: JobsShown
    statements: list[StatementShown]
    releases: list[ReleaseShown]
    catalog_imports: list[CatalogImportShown]


def seller_shown(shop: Shop) -> SellerShown:
    return SellerShown(
        id=shop.id,
        name=shop.name,
        email=shop.email,
        created_at=rfc3339(shop.created_at),
        members=shop.members,
        plan=shop.plan,
        trial_ends_at=_moment(shop.trial_ends_at),
        suspended=shop.suspended,
        past_due=shop.past_due,
        sync_mode=shop.sync_mode,
        product_lines=shop.product_lines,
        last_sync_at=_moment(shop.last_sync_at),
        leaves_at=_moment(shop.leaves_at),
    )


def sellers_shown(found: list[Shop], total: int, page: int, per_page: int) -> SellersShown:
    return SellersShown([seller_shown(shop) for shop in found], total, page, -(-total // per_page))


def installation_shown(
    found: Installation,
    now: datetime,
    *,
    unknown_lines: bool,
) -> InstallationShown:
    return InstallationShown(
        lines=[_line(line) for line in found.lines],
        unknown_lines=unknown_lines,
        queues=[_queue(queue, now) for queue in found.queues],
        jobs=JobsShown(*found.jobs),
        statements=[_statement(one) for one in found.statements],
        releases=[_release(one) for one in found.releases],
        catalog_imports=[_imported(one) for one in found.imports],
    )


def _line(line: GameLine) -> LineShown:
    return LineShown(*line)


def _queue(queue: Stream, now: datetime) -> QueueShown:
    waited = (now - queue.oldest_at).total_seconds() if queue.oldest_at else 0
    return QueueShown(
        queue.stream,
        queue.waiting,
        max(0, round(waited)),
        queue.resting,
        queue.put_back,
    )


def _statement(one: Statement) -> StatementShown:
    return StatementShown(round(one.seconds, 3), one.calls, one.state, one.statement)


def _release(one: AgentRelease) -> ReleaseShown:
    published, expires = rfc3339(one.published_at), rfc3339(one.expires_at)
    return ReleaseShown(*one[:5], published, expires, one.killed)


def _imported(one: Imported) -> CatalogImportShown:
    return CatalogImportShown(*one[:6], rfc3339(one.finished_at))


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)

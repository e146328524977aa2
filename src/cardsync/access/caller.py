"""Who is calling: the Authorization header in, a `Caller` out. (Members with a session:
`access/sessions.py`.)

One round trip reads the key, the account and the sync state together. Which seller a key belongs
to never changes, so that much is remembered per process; whether the key and the account are
still good is read on every request, on every process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from cardsync import errors
from cardsync.access import keys
from cardsync.access.entitlements import Entitlements, entitlements
from cardsync.database.hot_reads import PolledQuery
from cardsync.database.session import Database

if TYPE_CHECKING:
    # Workers know callers too, and need no web framework for it.
    from litestar.types import Scope


class Caller(NamedTuple):
    """A seller as one request sees it: account and sync state as they stood when the key or the
    session was checked.
    """

    key_is_good: bool
    seller_id: int
    plan: str
    trial_ends_at: datetime | None
    stored_sync_mode: str
    product_lines: list[str]
    suspended: bool
    past_due: bool
    write_consent: bool
    stored_upload_approved: bool
    auto_sync_paused: bool
    automatic_pricing_paused: bool
    sync_interval_minutes: int | None
    full_history_requested: bool
    object_store_pipeline_enabled: bool
    quiet_hours: str | None
    time_zone: str
    planner_opt_in: bool
    credits_metering_enabled: bool
    credit_balance: int
    requested_kind: str | None
    requested_at: datetime | None
    lock_kind: str | None
    lock_trigger: str | None
    lock_first_sync: bool
    lock_agent_id: str | None
    lock_refreshed_at: datetime | None
    lock_uploaded: bool
    lock_plan: dict[str, Any] | None
    lease_holder: str | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    work_phase: str | None
    work_done: int
    work_total: int
    uploads_open: int
    review_upload_id: int | None
    last_sync_at: datetime | None
    last_pricing_at: datetime | None
    history_fetched_at: datetime | None
    scheduled_failures: int
    last_failure_at: datetime | None
    export_fingerprint: str | None
    tasks_due_at: datetime | None
    price_tasks_due_at: datetime | None
    agent_kinds: list[str] | None
    rollback_until: datetime | None
    rollback_preparing_until: datetime | None
    export_until: datetime | None
    # Of a member who is signed in; a key has neither, and its holder may do what an owner may.
    member_id: int | None = None
    role: str = "owner"

    @property
    def actor(self) -> str:
        """Who did it, in the activity feed."""
        return "key" if self.member_id is None else f"member {self.member_id}"

    def must_be_owner(self) -> None:
        """The first line of every operation that staff may not do. Raises OwnerRequired."""
        if self.role != "owner":
            raise errors.OwnerRequired

    def entitlements(self, now: datetime) -> Entitlements:
        return entitlements(
            plan=self.plan,
            trial_ends_at=self.trial_ends_at,
            sync_mode=self.stored_sync_mode,
            upload_approved=self.stored_upload_approved,
            past_due=self.past_due,
            write_consent=self.write_consent,
            automatic_pricing_paused=self.automatic_pricing_paused,
            suspended=self.suspended,
            now=now,
        )


# What each field of `Caller` is read from.
CALLER_COLUMNS = {
    "key_is_good": "k.revoked_at IS NULL",
    "seller_id": "a.seller_id",
    "plan": "a.plan",
    "trial_ends_at": "a.trial_ends_at",
    "stored_sync_mode": "a.sync_mode",
    "product_lines": "a.product_lines",
    "suspended": "a.suspended",
    "past_due": "a.past_due",
    "write_consent": "a.write_consent",
    "stored_upload_approved": "a.upload_approved",
    "auto_sync_paused": "a.auto_sync_paused",
    "automatic_pricing_paused": "a.automatic_pricing_paused",
    "sync_interval_minutes": "a.sync_interval_minutes",
    "full_history_requested": "a.full_history_requested",
    "object_store_pipeline_enabled": "a.object_store_pipeline_enabled",
    "quiet_hours": "a.quiet_hours",
    "time_zone": "a.time_zone",
    "planner_opt_in": "a.planner_opt_in",
    "credits_metering_enabled": "a.credits_metering_enabled",
    "credit_balance": "a.credit_balance",
    "requested_kind": "s.requested_kind",
    "requested_at": "s.requested_at",
    "lock_kind": "s.lock_kind",
    "lock_trigger": "s.lock_trigger",
    "lock_first_sync": "s.lock_first_sync",
    "lock_agent_id": "s.lock_agent_id",
    "lock_refreshed_at": "s.lock_refreshed_at",
    "lock_uploaded": "s.lock_uploaded",
    "lock_plan": "s.lock_plan",
    "lease_holder": "s.lease_holder",
    "lease_expires_at": "s.lease_expires_at",
    "cancel_requested_at": "s.cancel_requested_at",
    "work_phase": "s.work_phase",
    "work_done": "s.work_done",
    "work_total": "s.work_total",
    "uploads_open": "s.uploads_open",
    "review_upload_id": "s.review_upload_id",
    "last_sync_at": "s.last_sync_at",
    "last_pricing_at": "s.last_pricing_at",
    "history_fetched_at": "s.history_fetched_at",
    "scheduled_failures": "s.scheduled_failures",
    "last_failure_at": "s.last_failure_at",
    "export_fingerprint": "s.export_fingerprint",
    "tasks_due_at": "s.tasks_due_at",
    "price_tasks_due_at": "s.price_tasks_due_at",
    "agent_kinds": "s.agent_kinds",
    "rollback_until": "s.rollback_until",
    "rollback_preparing_until": "s.rollback_preparing_until",
    "export_until": "s.export_until",
}
# The columns stand in the order of `Caller`'s fields; $1 is the seller and $2 the key's id.
CALLER = PolledQuery(
    "caller",
    f"""
SELECT {", ".join(CALLER_COLUMNS.values())}
      FROM account a JOIN sync_state s ON s.seller_id = a.seller_id JOIN api_key k ON k.seller_id = a.seller_id
     WHERE a.seller_id = $1 AND s.seller_id = $1 AND k.id = $2
""",
)


OWNER_SQL = "SELECT seller_id, id FROM api_key WHERE key_hash = %s"


class KeyRing:
    """Which key's hash belongs to which (seller, key id), or what else `sql` finds by a hash:
    bounded, filled on first sight.
    """

    def __init__(
        self, database: Database, size: int = 50_000, sql: LiteralString = OWNER_SQL
    ) -> None:
        self._database = database
        self._size = size
        self._sql = sql
        self._known: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        # Keys on first sight, and keys that nobody has, share two of the pool's connections: the
        # others are the sellers'.
        self._strangers = asyncio.Semaphore(2)

    async def owner(self, key: str) -> tuple[int, int] | None:
        digest = keys.key_hash(key)
        if digest in self._known:
            self._known.move_to_end(digest)
            return self._known[digest]
        # One round trip, not a session's four: after a restart every agent's key is looked up
        # within half a minute.
        async with self._strangers, self._database.hot.connection() as connection:
            row = await (await connection.execute(self._sql, (digest,))).fetchone()
        if row is None:
            return None
        self._known[digest] = (row[0], row[1])
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return row[0], row[1]


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that name, which is in lower case."""
    for given, value in scope["headers"]:
        if given == name:
            return value.decode("latin-1")
    return None


def bearer(header: str | None) -> str:
    """The key from an Authorization header; raises Unauthorized for none, another scheme or a
    wrong checksum.
    """
    if not header:
        raise errors.Unauthorized.challenge(credentials_sent=False)
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not keys.is_well_formed(token):
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return token


async def owner_of(ring: KeyRing, header: str | None) -> tuple[int, int]:
    """(seller, key id) of the key in the header, which may be revoked since; raises
    Unauthorized.
    """
    owner = await ring.owner(bearer(header))
    if owner is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return owner


async def caller_of(database: Database, seller_id: int, key_id: int) -> Caller:
    """Raises Unauthorized or AccountSuspended; both stand before anything else about the request
    is looked at.
    """
    row = await database.polled.first_row(seller_id, CALLER, key_id)
    if row is None or not row[0]:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    caller = Caller(*row)
    if caller.suspended:
        raise errors.AccountSuspended
    return caller

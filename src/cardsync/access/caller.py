"""Finds the caller by the API key in the Authorization header and returns a `Caller`. (For members
with a session, see `access/sessions.py`.)

A caller consists of an identity, an account and the seller's state. The query's columns are made
from the fields of `CallerAccount` and `SellerState`, so that structs and query have the same order.

One round trip reads the key, the account and the sync state together. A key never moves to another
seller, so each process caches the seller of a key. But every request reads whether the key and the
account are still valid.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, LiteralString, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from psycopg.rows import TupleRow

from cardsync.access import keys, sealed
from cardsync.access.entitlements import Entitlements, entitlements
from cardsync.platform import clock, errors
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.session import Database
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.kit.struct_rows import ReadsFor
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    # Workers use callers, too, and must not import a web framework.
    from litestar.types import Scope


T = TypeVar("T")
# The scopes that an assistant's token may have.
EVERY_SCOPE = frozenset({"mcp:read", "mcp:write"})


class Identity(msgspec.Struct, frozen=True):
    """The seller and the credential of a request: an API key, a member's session, a token, or a
    link.
    """

    seller_id: int
    credential: Literal["key", "session", "token", "link"]
    credential_id: int
    # Only a session belongs to a member. A key has the rights of an owner.
    member_id: int | None = None
    role: str = "owner"
    # Whether the member is an operator of this installation; False for a key.
    operator: bool = False
    # Keys and sessions have all scopes. A token has the scopes to which its owner consented.
    scopes: frozenset[str] = EVERY_SCOPE
    # The grant of a token. The token has the grant's rights, which may exclude buyers' data.
    grant_id: int | None = None
    sees_buyers: bool = True
    # Whether the owner marked the key as the shop's own script. The loss limits do not count the
    # changes of such a key.
    own_script: bool = False


class CallerAccount(msgspec.Struct, frozen=True):
    """The account's plan and switches. The fields are the columns of `account` that are read.

    `sync_mode` and `upload_approved` are the stored values; `entitlements` returns the values that
    are in effect.
    """

    plan: str
    trial_ends_at: datetime | None
    sync_mode: str
    product_lines: list[str]
    suspended: bool
    past_due: bool
    write_consent: bool
    upload_approved: bool
    auto_sync_paused: bool
    automatic_pricing_paused: bool
    sync_interval_minutes: int | None
    full_history_requested: bool
    object_store_pipeline_enabled: bool
    quiet_hours: str | None
    time_zone: str
    ship_within_days: int
    planner_opt_in: bool
    credits_metering_enabled: bool
    credit_balance: int
    staff_see_revenue: bool


class SellerState(msgspec.Struct, frozen=True):
    """The seller's row of `sync_state`, read without a lock: the sync lock, the lease and the sync
    request. The fields are the columns that are read (`agents/seller_state/models.py` explains
    them).
    """

    requested_kind: str | None
    requested_at: datetime | None
    lock_kind: str | None
    lock_trigger: str | None
    lock_first_sync: bool
    lock_agent_id: str | None
    lock_refreshed_at: datetime | None
    lock_uploaded: bool
    lock_order_data: bool
    lock_plan: JsonObject | None
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
    quick_add_waits: bool


class Caller(msgspec.Struct, frozen=True):
    """The seller and credential of one request. `account` and `state` were read when the credential
    was checked.
    """

    identity: Identity
    account: CallerAccount
    state: SellerState

    @property
    def seller_id(self) -> int:
        return self.identity.seller_id

    @property
    def member_id(self) -> int | None:
        return self.identity.member_id

    @property
    def role(self) -> str:
        return self.identity.role

    @property
    def actor(self) -> str:
        """The caller's name in the activity feed."""
        identity = self.identity
        if identity.credential == "session":
            return f"member {identity.member_id}"
        if identity.grant_id is not None:
            return f"grant {identity.grant_id}"
        return f"{identity.credential} {identity.credential_id}"

    def must_be_owner(self) -> None:
        """Guard operations that staff may not use. Each such operation calls this first. Raises
        OwnerRequired.
        """
        if self.role != "owner":
            raise errors.OwnerRequired

    @property
    def sees_revenue(self) -> bool:
        """Whether the caller may see revenue: what the shop earned, and the listed value of its
        stock. Staff may see it only if a setting allows that.
        """
        return self.role == "owner" or self.account.staff_see_revenue

    def today(self, now: datetime) -> date:
        """Return the present date in the account's time zone."""
        return now.astimezone(ZoneInfo(self.account.time_zone)).date()

    def must_see_revenue(self) -> None:
        """Guard operations whose whole answer is revenue. Each such operation calls this first.
        Raises OwnerRequired.
        """
        if not self.sees_revenue:
            raise errors.OwnerRequired

    def revenue(self, figure: T) -> T | None:
        """Return the figure, or None if the caller may not see revenue."""
        return figure if self.sees_revenue else None

    @property
    def sees_buyers(self) -> bool:
        """Whether the caller may see buyers' names and the seller's notes about them. Only a grant
        may exclude this.
        """
        return self.identity.sees_buyers

    def buyer(self, text: T) -> T | None:
        """Return the value, which is about a buyer, or None if the caller may not see buyers."""
        return text if self.sees_buyers else None

    def must_see_buyers(self) -> None:
        """Guard operations that overwrite buyers' data, because the caller must be able to read the
        data first. Each such operation calls this first. Raises BuyersHidden.
        """
        if not self.sees_buyers:
            raise errors.BuyersHidden

    def must_be_operator(self) -> int:
        """Return the operator's member ID. Every operation on the installation calls this first.

        Raises OperatorRequired.
        """
        if not self.identity.operator or self.member_id is None:
            raise errors.OperatorRequired
        return self.member_id

    def entitlements(self, now: datetime) -> Entitlements:
        return entitlements(self.account, now)


_STATE_BEGINS = len(CallerAccount.__struct_fields__)
_STATE_ENDS = _STATE_BEGINS + len(SellerState.__struct_fields__)


# Types of values about a buyer in an answer. A caller who may not see buyers gets null or "".
Buyer = Annotated[str | None, ReadsFor(Caller.buyer)]
BuyerText = Annotated[str, ReadsFor(lambda caller, text: caller.buyer(text) or "")]


def caller_query(name: str, credential: str, *columns: str) -> PolledQuery:
    """Return the query for a caller: the account, the seller's state and `columns` of the
    credential.

    `$1` is the seller and `$2` the credential's ID. `credential` is the JOIN that finds a valid
    credential.
    """
    account = [f"a.{field}" for field in CallerAccount.__struct_fields__]
    state = [f"s.{field}" for field in SellerState.__struct_fields__]
    return PolledQuery(
        name,
        f"""
SELECT {", ".join([*account, *state, *columns])}
  FROM account a JOIN sync_state s ON s.seller_id = a.seller_id {credential}
 WHERE a.seller_id = $1 AND s.seller_id = $1
""",
    )


def read_row(row: TupleRow) -> tuple[CallerAccount, SellerState, Sequence[Any]]:
    """Split a row of `caller_query` into the account, the seller's state and the credential's
    columns.
    """
    account = CallerAccount(*row[:_STATE_BEGINS])
    return account, SellerState(*row[_STATE_BEGINS:_STATE_ENDS]), row[_STATE_ENDS:]


CALLER = caller_query(
    "caller",
    "JOIN api_key k ON k.seller_id = a.seller_id AND k.id = $2 AND k.revoked_at IS NULL",
    "k.ends_at",
    "k.replaces",
    "k.own_script",
)
# The query for an account without a credential.
_ITSELF = caller_query("itself", "")
OWNER_SQL = "SELECT seller_id, id FROM api_key WHERE key_hash = %s"


# The caller whom the middleware admitted.
ADMITTED: Final = ScopeValue[Caller]("caller")


class KeyRing:
    """A bounded cache from the hash of a key to its (seller, key ID), or to another row that `sql`
    finds by a hash.
    """

    def __init__(
        self,
        database: Database,
        size: int = 50_000,
        sql: LiteralString = OWNER_SQL,
    ) -> None:
        self._database = database
        self._size = size
        self._sql = sql
        self._known: OrderedDict[bytes, tuple[object, ...]] = OrderedDict()
        # Look-ups of keys that are not cached share two connections of the pool, so that the other
        # connections stay free for requests with cached keys.
        self._strangers = asyncio.Semaphore(2)

    async def owner(self, key: str) -> tuple[int, int] | None:
        row = await self.row(key)
        return row and (row[0], row[1])

    async def row(self, key: str) -> TupleRow | None:
        """Return the row of the key. This row never changes."""
        digest = keys.key_hash(key)
        if digest in self._known:
            self._known.move_to_end(digest)
            return self._known[digest]
        # This takes one round trip instead of the four of a session, because after a restart every
        # agent's key is looked up within half a minute.
        async with self._strangers, self._database.hot.connection() as connection:
            row = await (await connection.execute(self._sql, (digest,))).fetchone()
        if row is None:
            return None
        self._known[digest] = row
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return row


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header with this name, which must be in lower case."""
    for given, value in scope["headers"]:
        if given == name:
            return value.decode("latin-1")
    return None


def bearer(header: str | None) -> str:
    """Return the key in an Authorization header. Raises Unauthorized if the header is missing, or
    has another scheme or a wrong checksum.
    """
    if not header:
        raise errors.Unauthorized.challenge(credentials_sent=False)
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not keys.is_well_formed(token):
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return token


async def owner_of(ring: KeyRing, header: str | None) -> tuple[int, int]:
    """Return the seller's ID and the key's ID; the key may have been revoked. Raises Unauthorized."""
    owner = await ring.owner(bearer(header))
    if owner is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return owner


async def caller_of(database: Database, seller_id: int, key_id: int) -> Caller:
    """Return the caller of a key. Raises Unauthorized or AccountSuspended."""
    row = await database.polled.first_row(seller_id, CALLER, key_id)
    if row is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    account, state, (ends_at, replaces, own_script) = read_row(row)
    now = clock.now()
    if ends_at is not None and now >= ends_at:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    if account.suspended:
        raise errors.AccountSuspended
    if replaces is not None:
        # The first use of a key revokes the key that it replaces.
        async with database.shared() as session:
            await sealed.settle_key(session, seller_id, key_id, now)
    return Caller(Identity(seller_id, "key", key_id, own_script=own_script), account, state)


async def as_owner(database: Database, seller_id: int) -> Caller | None:
    """Return a caller with an owner's rights, for work outside a request that writes no activity
    entry. None if the seller was removed.
    """
    row = await database.polled.first_row(seller_id, _ITSELF)
    if row is None:
        return None
    account, state, _ = read_row(row)
    return Caller(Identity(seller_id, "key", 0), account, state)

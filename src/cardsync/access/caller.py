"""Finds who calls by the Authorization header, and returns a `Caller`. (For members with a session,
see `access/sessions.py`.)

A caller is an identity, an account and the seller's state. The fields of the last two are the
columns that are read, so the order of the struct and the order of the query cannot differ.

One round trip reads the key, the account and the sync state together. A key never changes its
seller, so each process remembers that; every request, on every process, reads whether the key and
the account are still valid.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString, TypeVar

import msgspec

from cardsync.access import keys, sealed
from cardsync.access.entitlements import Entitlements, entitlements
from cardsync.platform import clock, errors
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import ReadsFor

if TYPE_CHECKING:
    # Workers know callers too, and need no web framework for it.
    from litestar.types import Scope


T = TypeVar("T")
# The rights of an assistant's tools: a token has one of these scopes or both.
EVERY_SCOPE = frozenset({"mcp:read", "mcp:write"})


class Identity(msgspec.Struct, frozen=True):
    """The seller, and what the caller showed for it: a key, a member's session, an OAuth token or a
    phone's link to a pull, with that credential's id.
    """

    seller_id: int
    credential: Literal["key", "session", "token", "link"]
    credential_id: int
    # Only a session has a member; the holder of a key may do what an owner may.
    member_id: int | None = None
    role: str = "owner"
    # Whether the member runs this installation, too; a key never does.
    operator: bool = False
    # Keys and sessions are not narrowed; a token has the scopes that its seller consented to.
    scopes: frozenset[str] = EVERY_SCOPE
    # A token of a grant has the rights of that grant, which may leave out who bought.
    grant_id: int | None = None
    sees_buyers: bool = True
    # A key that the owner has marked so: the loss limits do not weigh what it writes.
    own_script: bool = False


class CallerAccount(msgspec.Struct, frozen=True):
    """The account's plan and switches. The fields are the columns of `account` that are read.

    `sync_mode` and `upload_approved` are as they are stored: what holds is in `entitlements`.
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
    """The seller's one row of lock, lease and request, as it was read without a lock. The fields
    are the columns of `sync_state` that are read (`agents/seller_state/models.py` says what they
    mean).
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
    quick_add_waits: bool


class Caller(msgspec.Struct, frozen=True):
    """A seller as one request sees it: account and seller state are those of the moment when the
    credential was checked.
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
        """The name of the caller in the activity feed."""
        identity = self.identity
        if identity.credential == "session":
            return f"member {identity.member_id}"
        if identity.grant_id is not None:
            return f"grant {identity.grant_id}"
        return f"{identity.credential} {identity.credential_id}"

    def must_be_owner(self) -> None:
        """The first line of every operation that staff may not do. Raises OwnerRequired."""
        if self.role != "owner":
            raise errors.OwnerRequired

    @property
    def sees_revenue(self) -> bool:
        """Revenue is what the shop earned and what its stock is listed for: the owner's, unless
        a setting opens it to staff.
        """
        return self.role == "owner" or self.account.staff_see_revenue

    def must_see_revenue(self) -> None:
        """The first line of every operation that answers with revenue alone. Raises
        OwnerRequired.
        """
        if not self.sees_revenue:
            raise errors.OwnerRequired

    def revenue(self, figure: T) -> T | None:
        """Return a figure of the revenue in an answer that has others, or None where the caller may
        not see it.
        """
        return figure if self.sees_revenue else None

    @property
    def sees_buyers(self) -> bool:
        """Buyers' names, and the seller's notes on them, are for every caller but a grant whose
        owner withheld them.
        """
        return self.identity.sees_buyers

    def buyer(self, text: T) -> T | None:
        """Return a value about a buyer for an answer, or None where the caller may not see it."""
        return text if self.sees_buyers else None

    def must_see_buyers(self) -> None:
        """The first line of every operation that writes over what such a caller cannot read. Raises
        BuyersHidden.
        """
        if not self.sees_buyers:
            raise errors.BuyersHidden

    def must_be_operator(self) -> int:
        """Return the member's id, as the first line of every operation on the installation.

        Raises OperatorRequired.
        """
        if not self.identity.operator or self.member_id is None:
            raise errors.OperatorRequired
        return self.member_id

    def entitlements(self, now: datetime) -> Entitlements:
        account = self.account
        return entitlements(
            plan=account.plan,
            trial_ends_at=account.trial_ends_at,
            sync_mode=account.sync_mode,
            upload_approved=account.upload_approved,
            past_due=account.past_due,
            write_consent=account.write_consent,
            automatic_pricing_paused=account.automatic_pricing_paused,
            suspended=account.suspended,
            now=now,
        )


_STATE_BEGINS = len(CallerAccount.__struct_fields__)
_STATE_ENDS = _STATE_BEGINS + len(SellerState.__struct_fields__)


# Values about a buyer in an answer: null, or empty, for a caller who may not see buyers.
Buyer = Annotated[str | None, ReadsFor(Caller.buyer)]
BuyerText = Annotated[str, ReadsFor(lambda caller, text: caller.buyer(text) or "")]


def caller_query(name: str, credential: str, *columns: str) -> PolledQuery:
    """The one read of a caller: account and seller state, and of the credential those `columns`.

    `$1` is the seller and `$2` the credential's id; `credential` joins a credential that is good.
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


def read_row(row: Sequence[Any]) -> tuple[CallerAccount, SellerState, Sequence[Any]]:
    """The account, the seller's state and the further columns in a row of `caller_query`."""
    account = CallerAccount(*row[:_STATE_BEGINS])
    return account, SellerState(*row[_STATE_BEGINS:_STATE_ENDS]), row[_STATE_ENDS:]


CALLER = caller_query(
    "caller",
    "JOIN api_key k ON k.seller_id = a.seller_id AND k.id = $2 AND k.revoked_at IS NULL",
    "k.ends_at",
    "k.replaces",
    "k.own_script",
)
# The account itself, without a credential.
_ITSELF = caller_query("itself", "")
OWNER_SQL = "SELECT seller_id, id FROM api_key WHERE key_hash = %s"


class KeyRing:
    """A bounded cache from a key's hash to its (seller, key id), or to another row that `sql` finds
    by a hash.
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
        self._known: OrderedDict[bytes, tuple[Any, ...]] = OrderedDict()
        # Keys on first sight, and unknown keys, share two of the pool's connections: the
        # others are the sellers'.
        self._strangers = asyncio.Semaphore(2)

    async def owner(self, key: str) -> tuple[int, int] | None:
        row = await self.row(key)
        return row and (row[0], row[1])

    async def row(self, key: str) -> tuple[Any, ...] | None:
        """Return the row that `sql` finds for the key; it never changes."""
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
        self._known[digest] = row
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return row


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
    """Raises Unauthorized or AccountSuspended, both before anything else of the request is looked
    at.
    """
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
        # The first use of a key revokes the one that it replaces.
        async with database.shared() as session:
            await sealed.settle_key(session, seller_id, key_id, now)
    return Caller(Identity(seller_id, "key", key_id, own_script=own_script), account, state)


async def as_owner(database: Database, seller_id: int) -> Caller | None:
    """Return the seller as an owner sees it, for work that no request asks for and that writes no
    entry; None if it is removed.
    """
    row = await database.polled.first_row(seller_id, _ITSELF)
    if row is None:
        return None
    account, state, _ = read_row(row)
    return Caller(Identity(seller_id, "key", 0), account, state)

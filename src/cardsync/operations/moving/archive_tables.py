"""Lists the tables of a seller in an archive, the columns that it omits, and the reasons. Pure.

A test compares this with the metadata and with docs/moving.md: a new table is in the archive unless
this module gives the reason why it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import Table

from cardsync.stock.cards.chosen_match import KIND


class Holds(StrEnum):
    """The credentials that an archive may contain."""

    # All data and no credentials, for the seller.
    DATA = "data"
    # DATA, and the hashes of passwords and API keys, so that people and agents keep their access.
    ACCESS = "access"
    # ACCESS, and the secrets of webhooks in plain text.
    SECRETS = "secrets"


LEFT_OUT: Final[Mapping[str, str]] = {
    "account_deletion": "A shop that moves is not deleted where it arrives",
    "agent_seen": "The agent has not been seen where the shop arrives",
    "invitation": "Its link names the old address: invite again",
    "member_session": "A browser signs in again",
    "network_cell": "It is made of the cards once the owner shows the shop there",
    "network_look": "The same",
    "network_offer": "The same",
    "network_seller": "The same: the owner agrees to the network of each installation anew",
    "oauth_code": "An assistant asks for consent again",
    "order_tally": "The database counts the orders while they are written",
    "refresh_token": "An assistant asks for consent again",
    "shared_repair_vote": "Votes are counted over the shops of one installation",
    "upload_request": "Its address for an upload is the old one: the agent asks for another",
}
# The conditions for the rows of tables that the archive contains only in part.
WHICH: Final[Mapping[str, str]] = {
    # Tokens of grants end with their grants; the other tokens stay as names in the activity feed.
    "access_token": "grant_id IS NULL",
    # The rows of a file that is being written are still in their table.
    "old_rows": "kept_at IS NOT NULL",
    "work_due": "stream NOT IN ('deletion', 'left_objects')",
}
WHICH_OF: Final[Mapping[tuple[Holds, str], str]] = {(Holds.DATA, "passkey"): "false"}
# Columns that are empty in the archive.
EMPTIED: Final[Mapping[str, Mapping[str, str]]] = {
    "access_token": {"token_hash": "NULL::bytea", "audience": "NULL::text"},
    "pull_link": {"secret_hash": "NULL::bytea"},
    "buying_offer": {"secret_hash": "NULL::bytea"},
    "agent_task": {"token_hash": "NULL::bytea", "ended_hash": "NULL::bytea"},
    "sync_state": {
        "lock_kind": "NULL::text",
        "lock_trigger": "NULL::text",
        "lock_first_sync": "false",
        "lock_agent_id": "NULL::text",
        "lock_taken_at": "NULL::timestamptz",
        "lock_refreshed_at": "NULL::timestamptz",
        "lock_uploaded": "false",
        "lock_order_data": "false",
        "lock_plan": "NULL::jsonb",
        "lease_holder": "NULL::text",
        "lease_token": "NULL::uuid",
        "lease_expires_at": "NULL::timestamptz",
    },
    "webhook": {
        "former_secret": "NULL::bytea",
        "former_until": "NULL::timestamptz",
    },
    "work_due": {
        "put_back_id": "NULL::bigint",
        "put_back_times": "0",
        "put_back_since": "NULL::timestamptz",
        "rests_until": "NULL::timestamptz",
        "attempts": "0",
        "failures": "0",
    },
}
_WITHOUT_ACCESS: Final[Mapping[str, Mapping[str, str]]] = {
    "member": {"password_hash": "NULL::text"},
    "api_key": {"key_hash": "NULL::bytea"},
    "webhook": {"secret": "NULL::bytea"},
}
_WITHOUT_SECRETS: Final[Mapping[str, Mapping[str, str]]] = {"webhook": {"secret": "NULL::bytea"}}
# The values that replace a row's own values on import. A credential without its hash is revoked.
_A_HASH: Final = "coalesce({0}, sha256(convert_to(gen_random_uuid()::text, 'UTF8')))"
_ENDED: Final = "coalesce(revoked_at, CASE WHEN {0} IS NULL THEN now() END)"
ARRIVES: Final[Mapping[str, Mapping[str, str]]] = {
    "account": {
        # Columns that the operator of each installation decides.
        "plan": ":plan",
        "trial_ends_at": "NULL",
        "suspended": "false",
        "past_due": "false",
        "upload_approved": "false",
        "credits_metering_enabled": "false",
        "credit_balance": "0",
        "network_consent": "false",
        "network_published": "false",
        "network_consented_at": "NULL",
        "network_published_at": "NULL",
    },
    "access_token": {
        "token_hash": _A_HASH.format("token_hash"),
        "revoked_at": _ENDED.format("token_hash"),
    },
    "api_key": {"key_hash": _A_HASH.format("key_hash"), "revoked_at": _ENDED.format("key_hash")},
    "member": {"role": "CASE WHEN lower(email) = ANY(:owners) THEN 'owner' ELSE 'staff' END"},
    "oauth_grant": {"revoked_at": "coalesce(revoked_at, now())"},
    "pull_link": {
        "secret_hash": _A_HASH.format("secret_hash"),
        "revoked_at": _ENDED.format("secret_hash"),
    },
}
# Tables in the archive that an import does not write.
NOT_TAKEN: Final[Mapping[str, str]] = {
    "credit_transaction": "Credits are granted by the operator of each installation",
}
# IDs of these tables are unique within an installation, so they are assigned anew; IDs of all other
# tables are unique within a seller, and stay.
COUNTED_ANEW: Final = ("member", "api_key", "access_token", "passkey")
# The columns and JSON keys with IDs of members, and the columns and JSON keys with IDs of products.
MEMBERS: Final = frozenset({"member_id", "contributed_by"})
PRODUCTS: Final = frozenset({"product_id", "was_product_id"})
# The columns whose texts name a caller, such as `member 3`, or an object of the seller.
CALLERS: Final = frozenset(
    {
        "actor",
        "answered_by",
        "begun_by",
        "created_by",
        "decided_by",
        "made_by",
        "settled_by",
        "summary",
    }
)
KEYS: Final = frozenset({"storage_key", "source_key", "screenshot_key"})
# The kinds of stored objects in an archive; `syncs` are uploads that nobody has accepted.
OBJECTS: Final = ("accepted", "debug", "receipts", "pictures", "old")

# The table of the catalog's products that the seller's rows name, and the columns that identify a
# product for another installation: an import looks them up in its own catalog.
PRODUCT: Final = "product"
_PRODUCT: Final = (
    "id",
    "identity",
    "game",
    "set_name",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "sealed",
)
# The products that an undo would restore.
_UNDONE: Final = f"""
    SELECT CAST(undo ->> side AS bigint) FROM activity, unnest(ARRAY['was', 'became']) AS side
     WHERE seller_id = {{seller}} AND undo ->> 'kind' = '{KIND}'
"""


class Column(NamedTuple):
    """A column, and its value in the archive as SQL."""

    name: str
    value: str


@dataclass(frozen=True)
class Part:
    """A table of the archive. `which` selects its rows, in the order of `key`."""

    name: str
    columns: tuple[Column, ...]
    which: str
    key: str
    of_seller: bool = True

    def query(self, seller_id: int) -> str:
        """Return the query of the rows. Only the seller's number comes from outside this module."""
        listed = ", ".join(f"{one.value} AS {quoted(one.name)}" for one in self.columns)
        owner = "id" if self.name == "seller" else "seller_id"
        own = f"{owner} = {int(seller_id)} AND " if self.of_seller else ""
        return f"SELECT {listed} FROM {self.name} WHERE {own}{self.which} ORDER BY {self.key}"


def products(parts: Sequence[Part], seller_id: int) -> Part:
    """Return the products of the catalog that the seller's rows name."""
    named = [
        f"SELECT {column.name} FROM {part.name} WHERE seller_id = {int(seller_id)}"
        for part in parts
        for column in part.columns
        if column.name in PRODUCTS
    ]
    which = " UNION ".join([*named, _UNDONE.format(seller=int(seller_id))])
    columns = tuple(Column(name, name) for name in _PRODUCT)
    return Part(PRODUCT, columns, f"id IN ({which})", "id", of_seller=False)


def quoted(name: str) -> str:
    """Return a column's name quoted for SQL, because some are keywords."""
    return f'"{name}"'


def parts(tables: Sequence[Table], holds: Holds) -> list[Part]:
    """Return the parts of an archive, in an order that satisfies the foreign keys. `tables` are all
    tables that name a seller, and `seller`.
    """
    return [_part(table, holds) for table in tables if table.name not in LEFT_OUT]


def _part(table: Table, holds: Holds) -> Part:
    name = table.name
    empty = dict(EMPTIED.get(name, {}))
    if holds is not Holds.SECRETS:
        empty |= _WITHOUT_SECRETS.get(name, {})
    if holds is Holds.DATA:
        empty |= _WITHOUT_ACCESS.get(name, {})
    columns = [
        Column(one.name, empty.get(one.name, quoted(one.name)))
        for one in table.columns
        # The database computes some columns from others.
        if one.name != "seller_id" and one.computed is None
    ]
    which = WHICH_OF.get((holds, name), WHICH.get(name, "true"))
    key = [quoted(one.name) for one in table.primary_key.columns if one.name != "seller_id"]
    return Part(name, tuple(columns), which, ", ".join(key) or "1")

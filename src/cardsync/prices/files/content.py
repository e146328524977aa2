"""Writes the price file: the cards whose target differs from the marketplace's price, as the CSV
that the marketplace imports.

PostgreSQL writes the CSV; this module only changes its line ends to CRLF. The seller's row of
`sync_state` has a fingerprint of the set of (id, target), so that a 304 answer needs only that row,
which authentication reads anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.exported import EXPORTED
from cardsync.catalog.marketplace_columns import HEADER_ONLY

# Every record ends with a cell of this control character. No other cell begins with it, and quotes
# inside cells are doubled, so `_RECORD_END` matches only at the end of a record.
_END = "\x01"
_RECORD_END = f',"{_END}"\n'.encode()

_EXPORT_SQL = """
    COPY (
        SELECT c.listing_id, c.product_line_label, c.set_name, c.product_name, c.title, c.number,
          c.rarity, c.condition_label,
               coalesce(c.market::text, ''), coalesce(c.direct_low::text, ''),
                 coalesce(c.low_with_shipping::text, ''),
               coalesce(c.low::text, ''), c.quantity, '0', {price}, c.photo_url, E'\\x01'
          FROM {cards} WHERE {which} ORDER BY c.listing_id, c.id
    ) TO STDOUT WITH (FORMAT csv, FORCE_QUOTE *)
"""
# Excludes the targets that a sale set, if that sale is not active.
_NOT_ENDED = """ AND NOT EXISTS (
    SELECT FROM price_decision t
     WHERE t.seller_id = {seller_id} AND t.kind = 'sale' AND t.marketplace_id = c.marketplace_id
       AND t.source_id IN ({ended}))
"""
REASONS = (
    "no_updates", "not_entitled", "consent_missing", "past_due", "apply_in_progress", "automatic_pricing_paused",
    "awaiting_review", "rollback_preparing", "drafts_only",
)  # fmt: skip


def export_sql(cards: str, which: str, price: str) -> str:
    """Return the COPY statement of the pricing CSV's rows. `cards` is a FROM clause that contains
    `card c`; `csv_of` makes a file of the rows.
    """
    return _EXPORT_SQL.format(cards=cards, which=which, price=price)


def served(seller_id: int, ended: Sequence[int]) -> str:
    """Return the condition over `card c` that selects the price file's cards, without the targets
    that these ended sales set.
    """
    which = EXPORTED.format(seller_id=int(seller_id))
    if not ended:
        return which
    ids = ", ".join(str(int(id)) for id in ended)
    return which + _NOT_ENDED.format(seller_id=int(seller_id), ended=ids)


def csv_of(rows: bytes) -> bytes:
    return HEADER_ONLY + rows.replace(_RECORD_END, b"\r\n")


def rollback_waits(caller: Caller, now: datetime) -> bool:
    """Return whether a rollback is served in place of the targets. Pure."""
    until = caller.state.rollback_until
    return until is not None and until > now


def forced_reasons(caller: Caller, now: datetime) -> list[str]:
    """Return the reasons why this account gets a header-only file regardless of its
    targets. Pure.
    """
    holds, state = {*caller.entitlements(now).holds}, caller.state
    if state.review_upload_id is not None:
        holds.add("awaiting_review")
    if state.rollback_preparing_until is not None and state.rollback_preparing_until > now:
        holds.add("rollback_preparing")
    return [reason for reason in REASONS if reason in holds]


def weak_etag(forced: list[str], fingerprint: str) -> str:
    # The ETag of a header-only answer is made of the reasons, so that it changes when a reason
    # ends.
    return f'W/"{"+".join(forced) or fingerprint}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Return whether the If-None-Match header is `*` or contains the ETag, by weak comparison."""
    if if_none_match is None:
        return False
    tags = [tag.strip() for tag in if_none_match.split(",")]
    return "*" in tags or etag.removeprefix("W/") in [tag.removeprefix("W/") for tag in tags]


def unchanged(caller: Caller, if_none_match: str | None, now: datetime) -> str | None:
    """Return the ETag of a 304 answer, or None if the answer needs a body. The decision uses only
    the state row that authentication read.
    """
    if (
        caller.entitlements(now).sync_mode != "read_only"
        or if_none_match is None
        or rollback_waits(caller, now)
        or caller.state.quick_add_waits
    ):
        return None
    forced, state = forced_reasons(caller, now), caller.state
    is_known = holds_at(state.export_fingerprint, state.export_until, now)
    if state.price_tasks_due_at is not None or (not forced and not is_known):
        # An agent may be importing the prices, a run may be changing them or a sale may have ended:
        # the caller must then read the cards.
        return None
    etag = weak_etag(forced, state.export_fingerprint or "")
    return etag if matches(if_none_match, etag) else None


def holds_at(fingerprint: str | None, until: datetime | None, now: datetime) -> bool:
    """Return whether the stored fingerprint matches the prices that are served. Pure.

    It matches while no run is changing the prices and every sale among them is active.
    """
    return fingerprint is not None and (until is None or until > now)

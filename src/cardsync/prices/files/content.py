"""Writes the price file: the cards whose target differs from the marketplace's price, as the CSV
that the marketplace imports.

PostgreSQL writes the CSV; we only make its line ends CRLF. The seller's state row has a fingerprint
of the set of (id, target), so that a 304 costs the one row that the caller's check reads anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.exported import EXPORTED
from cardsync.catalog.marketplace_columns import HEADER_ONLY

# A control character cannot begin a cell that we quote, and quotes inside cells are doubled: this
# ends every record and nothing else.
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
# Leaves out a target that a sale set when that sale is not on.
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
    """Return the query of the pricing CSV's rows `FROM cards`, which has `card c`; `csv_of` makes a
    file of them.
    """
    return _EXPORT_SQL.format(cards=cards, which=which, price=price)


def served(seller_id: int, ended: Sequence[int]) -> str:
    """Select the export while these sales are over, although the targets were computed with them."""
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
    """Return why this account gets a header-only file whatever its targets are. Pure."""
    holds, state = {*caller.entitlements(now).holds}, caller.state
    if state.review_upload_id is not None:
        holds.add("awaiting_review")
    if state.rollback_preparing_until is not None and state.rollback_preparing_until > now:
        holds.add("rollback_preparing")
    return [reason for reason in REASONS if reason in holds]


def weak_etag(forced: list[str], fingerprint: str) -> str:
    # A header-only answer has an ETag of its own: it must change when the reason goes away.
    return f'W/"{"+".join(forced) or fingerprint}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Weak comparison with a list of tags, or `*`."""
    if if_none_match is None:
        return False
    tags = [tag.strip() for tag in if_none_match.split(",")]
    return "*" in tags or etag.removeprefix("W/") in [tag.removeprefix("W/") for tag in tags]


def unchanged(caller: Caller, if_none_match: str | None, now: datetime) -> str | None:
    """The ETag to answer 304 with, decided on the row that was read with the key; None when a
    body is due.
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
        # An agent may have the prices in hand, a run is changing them or a sale is over: that is
        # looked at with the cards.
        return None
    etag = weak_etag(forced, state.export_fingerprint or "")
    return etag if matches(if_none_match, etag) else None


def holds_at(fingerprint: str | None, until: datetime | None, now: datetime) -> bool:
    """Return whether the stored fingerprint is that of the served set. Pure.

    It does while no run is changing the set and every sale in it is still on.
    """
    return fingerprint is not None and (until is None or until > now)

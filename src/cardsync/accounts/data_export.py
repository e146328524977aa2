"""Exports all data of an account as one zip, each table as CSV and as Parquet, while the tables are
read, and old rows as they are in the object store. The last file, `manifest.json`, names the bytes
and the SHA-256 of each other.

Each part of a table is a short transaction of its own, so that a slow download holds no connection:
a change meanwhile may appear in one file and not yet in another.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, NamedTuple

import msgspec
from psycopg import sql

from cardsync import __version__, clock
from cardsync.access.caller import Caller
from cardsync.database.copy import copy_bytes
from cardsync.database.parquet_sheet import ParquetSheet
from cardsync.database.session import Database, driver
from cardsync.old_data.read_back import Old, old_files
from cardsync.operations.backup_folder import MANIFEST, FileLine
from cardsync.storage import Store
from cardsync.web.safe_texts import safe_texts

ZIP: Final = "application/zip"
ROWS_AT_ONCE: Final = 20_000
_LEVEL: Final = 4
# An entry of a zip has a time; these carry the earliest that the format knows.
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


class Sheet(NamedTuple):
    """A file of the archive: the table's rows in the order of `key`, a whole number in SQL that few
    rows share.
    """

    name: str
    table: str
    key: str
    columns: str
    which: str = "true"


_ACCEPTED: Final = """
    (SELECT d.{column} FROM price_decision d
      WHERE d.seller_id = {{seller}} AND d.kind = 'accepted'
        AND d.marketplace_id = proposal.marketplace_id) AS {name}
"""
_EVIDENCE: Final = "((evidence ->> '{name}')::bigint / 10000.0)::numeric(12, 4) AS {name}"
_DAY: Final = "(day - DATE '2000-01-01')"
_OF_DAY: Final = """
    (SELECT coalesce(sum(s.{0}), 0) FROM sales_sum s
      WHERE s.seller_id = sales_kept.seller_id AND s.ordered = sales_kept.ordered)::{1}
"""
SHEETS: Final = (
    Sheet(
        "cards.csv",
        "card",
        "id",
        "id, marketplace_id, listing_id, product_line, product_name, set_name, title, number,"
        " rarity, condition_label, printing, language, quantity, price, target_price, market, low,"
        " low_with_shipping, direct_low, gone, custom, contribution, photo_url, observed_at,"
        " created_at, updated_at",
        # Another member's draft is that member's alone.
        "(contribution IS DISTINCT FROM 'private' OR contributed_by = {member})",
    ),
    Sheet("price_history.csv", "price_observation", "card_id", "*"),
    Sheet(
        "orders.csv",
        "orders",
        "id",
        "id, order_number, buyer_name, order_date, placed_at_given, status, product_amt,"
        " shipping_amt, total_amt, refund_type, refund_origin, refund_product_amt,"
        " refund_shipping_amt, refund_amt, refund_reason, refund_note, shipping_method, city,"
        " state, postal_code, tracking_number, shipping_type, items_total, items_quantity,"
        " feedback_rating, feedback_comment, shipped_marked_at, pull_dismissed_at, created_at,"
        " updated_at",
    ),
    Sheet("order_items.csv", "order_item", "id", "*"),
    Sheet("lists.csv", "card_list", "id", "id, name, created_at, deleted_at"),
    Sheet("list_cards.csv", "card_list_entry", "list_id", "list_id, card_id, added_at"),
    Sheet("saved_searches.csv", "saved_search", "id", "id, name, query, position, created_at"),
    Sheet("settled_matches.csv", "settled_match", "card_id", "*"),
    Sheet("activity.csv", "activity", "id", "*"),
    Sheet("places.csv", "card_location", "card_id", "*"),
    Sheet("counts.csv", "shelf_count", "id", "*"),
    Sheet("counted_cards.csv", "shelf_count_line", "count_id", "*"),
    Sheet("pricing_rules.csv", "pricing_rule", "id", "*"),
    Sheet("rule_tests.csv", "rule_test", "id", "*"),
    Sheet("pricing_sales.csv", "pricing_sale", "id", "*"),
    Sheet(
        "pinned_prices.csv",
        "price_decision",
        "marketplace_id",
        "seller_id, marketplace_id, price, since AS created_at, until",
        "kind = 'pin'",
    ),
    Sheet(
        "price_runs.csv",
        "price_run",
        "id",
        "id, trigger, state, started_at, finished_at, summary",
    ),
    Sheet(
        "price_reviews.csv",
        "proposal",
        "marketplace_id",
        "seller_id, marketplace_id, state, kind AS reason, rule_id, current_price, proposed_price,"
        f" {_EVIDENCE.format(name='regular_price')}, {_EVIDENCE.format(name='result')}, worth,"
        " revision, created_at, expires_at, settled_at AS decided_at, settled_by AS decided_by,"
        f"{_ACCEPTED.format(column='price', name='accepted_price')},"
        f"{_ACCEPTED.format(column='since', name='accepted_at')}",
        "family = 'review'",
    ),
    Sheet(
        "price_holdouts.csv",
        "price_decision",
        "marketplace_id",
        "seller_id, marketplace_id, part, source_id AS rule_id, kind = 'held_out' AS held, price,"
        " asked, since",
        "kind IN ('held_out', 'twin')",
    ),
    Sheet(
        "recommendations.csv",
        "proposal",
        "id",
        "seller_id, id, slot, family, kind, state, card_id, rule_id, current_price,"
        " proposed_price, expected_value, worth, confidence, evidence, evidence_key, revision,"
        " created_at, expires_at, settled_at, settled_by",
        "family <> 'review'",
    ),
    Sheet("recommendation_events.csv", "recommendation_event", "recommendation_id", "*"),
    Sheet("listed_value.csv", "listed_value", _DAY, "*"),
    Sheet(
        "sales_by_day.csv",
        "sales_kept",
        "(ordered - DATE '2000-01-01')",
        f"seller_id, ordered AS day, {_OF_DAY.format('orders', 'integer')} AS orders,"
        f" {_OF_DAY.format('gross', 'numeric(20, 4)')} AS gross, kept_at AS seen_at",
        # The other rows are of orders without a date.
        "ordered > DATE '0001-01-01'",
    ),
    Sheet("sales_reports.csv", "sales_report", "(month - DATE '2000-01-01')", "*"),
    Sheet(
        "customer_notes.csv",
        "customer_note",
        "('x' || substr(encode(key, 'hex'), 1, 15))::bit(60)::bigint",
        "encode(key, 'hex') AS customer, note, updated_at",
    ),
    Sheet("pulls.csv", "pull_session", "id", "id, state, opened_at, completed_at"),
    Sheet(
        "pulled_orders.csv",
        "pull_session_order",
        "session_id",
        "session_id, order_id, pulled_at, missing_at",
    ),
    Sheet(
        "pull_marks.csv",
        "pull_mark",
        "session_id",
        "session_id, order_id, item_id, sku_id, kind, quantity, person, undone, received_at",
    ),
    Sheet("quick_adds.csv", "quick_add", "id", "*"),
    Sheet("buying_customers.csv", "buying_customer", "id", "*"),
    Sheet("store_credit.csv", "store_credit_entry", "id", "*"),
    Sheet(
        "offers.csv",
        "buying_offer",
        "id",
        "id, state, source, customer_id, note, way, cash_part, paid_cash, paid_credit, created_at,"
        " offered_at, expires_at, answered_at, received_at, paid_at, stocked_at",
    ),
    Sheet(
        "offer_lines.csv",
        "buying_offer_line",
        "id",
        "id, offer_id, product_line, set_name, product_name, number, condition, printing,"
        " language, copies, cash_each, credit_each, reason, accepted, received_copies,"
        " received_condition, received_cash_each, received_credit_each, cost_each",
    ),
    Sheet("lots.csv", "lot", "id", "*"),
    Sheet("sold_from_lots.csv", "lot_use", "item_id", "*"),
    Sheet(
        "payments.csv",
        "order_payment",
        "('x' || substr(md5(order_number), 1, 15))::bit(60)::bigint",
        "*",
    ),
    Sheet("buy_rules.csv", "buy_rule", "id", "*"),
    Sheet("buy_rule_tests.csv", "buy_rule_test", "id", "*"),
    Sheet(
        "collections.csv",
        "collection",
        "id",
        "id, name, state, format, rows, rejected_count, created_by, received_at, finished_at",
    ),
    # A collection has too many rows for one part.
    Sheet("collection_rows.csv", "collection_row", "(collection_id * 1000000 + row)", "*"),
    Sheet("notices.csv", "notice", "id", "*"),
    Sheet(
        "webhooks.csv", "webhook", "id", "id, url, kinds, created_at, off_at, off_why, last_sent_at"
    ),
    Sheet(
        "credits.csv",
        "credit_transaction",
        "id",
        "id, kind, amount, balance_after, reason, created_at",
    ),
)


class _Pipe(io.RawIOBase):
    """A file that cannot be sought: what the archive writes is taken from it again."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(data)  # type: ignore[call-overload]
        self._parts.append(part)
        return len(part)

    def close(self) -> None:
        """Take what the archive writes at its end, in whatever order the two are cleared away."""

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class _Zip(zipfile.ZipFile):
    """A zip that is ended by its block alone."""

    def __del__(self) -> None:
        """Leave the end to the block: it ends the open entry first."""


class _Counted:
    """A file of the archive that is hashed while it is written."""

    def __init__(self, entry: IO[bytes]) -> None:
        self._entry, self._hashed, self._size = entry, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self._hashed.update(data)
        self._size += len(data)
        self._entry.write(data)

    def line(self) -> FileLine:
        return FileLine(self._size, self._hashed.hexdigest())


async def archive(database: Database, caller: Caller, store: Store) -> AsyncGenerator[bytes, None]:
    """Return the archive's bytes in parts; the first one is read already, so that a refusal is not
    an archive that ends early. Raises OwnerRequired.
    """
    caller.must_be_owner()
    parts = _parts(database, caller, store)
    return _all(await anext(parts), parts)


async def _all(first: bytes, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        yield first
        async for part in parts:
            yield part


async def _parts(database: Database, caller: Caller, store: Store) -> AsyncGenerator[bytes, None]:
    pipe = _Pipe()
    lines: dict[str, FileLine] = {}
    with _Zip(pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as file:
        for sheet in SHEETS:
            async with aclosing(_both_files(database, caller, sheet, file, pipe, lines)) as parts:
                async for part in parts:
                    yield part
        async for name, data in old_files(Old(database, store, caller.seller_id)):
            info = zipfile.ZipInfo(name, _MOMENT)
            with file.open(info, "w") as opened:
                entry = _Counted(opened)
                entry.write(data)
            lines[name] = entry.line()
            yield pipe.taken()
        said = {"made_at": clock.now(), "program": __version__, "files": lines}
        with file.open(zipfile.ZipInfo(MANIFEST, _MOMENT), "w") as last:
            last.write(msgspec.json.format(msgspec.json.encode(said)))
    yield pipe.taken()


async def _both_files(
    database: Database,
    caller: Caller,
    sheet: Sheet,
    file: _Zip,
    pipe: _Pipe,
    lines: dict[str, FileLine],
) -> AsyncGenerator[bytes, None]:
    """Write a sheet into the archive, as CSV and as Parquet, and hand on what the archive has."""
    turn = database.file_turn(caller.seller_id)
    columns = await _columns(database, caller, sheet)
    with TemporaryDirectory(prefix="cardsync-") as folder:
        parquet = ParquetSheet(Path(folder), columns)
        with file.open(sheet.name, "w", force_zip64=True) as opened:
            entry = _Counted(opened)
            last, head = None, True
            while head or last is not None:
                async with turn():
                    part, last = await _part(database, caller, sheet, last)
                    await asyncio.to_thread(_add, entry, parquet, part, head=head)
                head = False
                if data := pipe.taken():
                    yield data
        lines[sheet.name] = entry.line()
        chunks = parquet.chunks()
        # Parquet is compressed already.
        info = zipfile.ZipInfo(sheet.name.replace(".csv", ".parquet"), _MOMENT)
        with file.open(info, "w", force_zip64=True) as opened:
            entry = _Counted(opened)
            while chunk := await asyncio.to_thread(next, chunks, b""):
                entry.write(chunk)
                yield pipe.taken()
        lines[info.filename] = entry.line()


def _add(entry: _Counted, parquet: ParquetSheet, part: bytes, *, head: bool) -> None:
    """Add the rows to both files; Parquet keeps each text as it is, since nothing calculates it."""
    cells = parquet.add(part, head=head)
    safely = safe_texts(cells, parquet.texts if part else ())
    # Rewriting takes longer than reading, and few parts have such a text.
    entry.write(part if safely.equals(cells) else safely.write_csv(include_header=head).encode())


async def _columns(
    database: Database,
    caller: Caller,
    sheet: Sheet,
) -> dict[str, tuple[str, int | None]]:
    """Return each column's type, and the decimal places of an amount that has a fixed number."""
    query = sql.SQL("SELECT {columns} FROM {table} WHERE false").format(
        columns=sql.SQL(sheet.columns).format(seller=sql.Literal(caller.seller_id)),
        table=sql.Identifier(sheet.table),
    )
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        connection = await driver(session)
        async with connection.cursor() as cursor:
            await cursor.execute(query)
            columns_read = cursor.description or []
            types = connection.adapters.types
            known = {column.name: types.get(column.type_code) for column in columns_read}
            return {
                column.name: (kind.name if (kind := known[column.name]) else "text", column.scale)
                for column in columns_read
            }


async def _part(
    database: Database, caller: Caller, sheet: Sheet, after: int | None
) -> tuple[bytes, int | None]:
    """Return the rows after that key, and the key that the next ones come after, if any."""
    names = {
        "table": sql.Identifier(sheet.table),
        "key": sql.SQL(sheet.key),
        "which": sql.SQL(sheet.which).format(member=sql.Literal(caller.member_id)),
    }
    values = {"seller": caller.seller_id, "after": -(2**63) if after is None else after}
    bound = sql.SQL(
        "SELECT max(k), count(*) FROM (SELECT {key} AS k FROM {table}"
        " WHERE seller_id = %(seller)s AND {key} > %(after)s AND {which} ORDER BY {key} LIMIT {most}) t"
    ).format(**names, most=sql.Literal(ROWS_AT_ONCE))
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        connection = await driver(session)
        async with connection.cursor() as cursor:
            await cursor.execute(bound, values)
            row = await cursor.fetchone()
            last, count = row or (None, 0)
            copy = sql.SQL(
                "COPY (SELECT {columns} FROM {table} WHERE seller_id = {seller}"
                " AND {key} > {after} AND {key} <= {last} AND {which} ORDER BY {key})"
                " TO STDOUT (FORMAT csv, HEADER {head}, ENCODING 'UTF8')"
            ).format(
                **names,
                columns=sql.SQL(sheet.columns).format(seller=sql.Literal(caller.seller_id)),
                seller=sql.Literal(caller.seller_id),
                after=sql.Literal(values["after"]),
                last=sql.Literal(values["after"] if last is None else last),
                head=sql.SQL("true" if after is None else "false"),
            )
        data = await copy_bytes(session, copy.as_string(connection))
    return data, last if count == ROWS_AT_ONCE else None

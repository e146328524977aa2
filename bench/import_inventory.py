"""`python bench/import_inventory.py [--rows 300000] [--rounds 3]`: from an accepted upload to
committed targets.

Measured in one run: the floor (inflate + read_csv + COPY into an unlogged table), a csv-module +
executemany program that ends in the same tables, and the real worker process: a first import, and
the same file again with 15 % of its prices moved. The worker's peak memory is its process's own;
matched products are compared with the generator's truth. `--budgeted 1` leaves the slow program out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import statistics
import sys
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import polars as pl
import psutil
import psycopg
from isal import igzip

import ground
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.platform.database.urls import libpq_url
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import MB, Client, Ground, Report, spread

SLAB = 20_000
FLOOR_TYPES = {pl.Int64: "bigint", pl.Float64: "double precision", pl.String: "text"}


def floor(made: Ground, data: bytes) -> float:
    """Inflate + read_csv + COPY, seconds."""
    with psycopg.connect(made.admin_url) as connection:
        started = perf_counter()
        frame = pl.read_csv(igzip.decompress(data))
        columns = ", ".join(
            f'"{name}" {FLOOR_TYPES[kind.base_type()]}' for name, kind in frame.schema.items()
        )
        connection.execute(f"CREATE UNLOGGED TABLE floor ({columns})")
        out = io.BytesIO()
        frame.write_csv(out, include_header=False)
        with connection.cursor().copy("COPY floor FROM STDIN WITH (FORMAT csv)") as copy:
            view = out.getbuffer()
            for at in range(0, len(view), 1 << 18):
                copy.write(view[at : at + (1 << 18)])
        connection.commit()
        took = perf_counter() - started
        connection.execute("DROP TABLE floor")
        connection.commit()
    return took


def naive(made: Ground, data: bytes) -> float:
    """A plain program: csv module, a dict of products, Decimal prices, executemany in slabs; it
    ends in the same tables.
    """
    seller = made.new_seller().seller_id
    with psycopg.connect(libpq_url(made.url)) as connection:
        started = perf_counter()
        products = _products(connection)
        connection.execute(f"SET app.seller_id = '{seller}'")
        run = connection.execute(
            "INSERT INTO price_run (seller_id, trigger, started_at)"
            " VALUES (%s, 'sync', now()) RETURNING id",
            [seller],
        ).fetchone()
        assert run is not None
        connection.commit()
        slab: list[dict[str, Any]] = []
        for number, row in enumerate(
            csv.DictReader(io.StringIO(gzip.decompress(data).decode(), newline=""))
        ):
            slab.append(_naive_row(seller, run[0], 10**12 + number, row))
            if len(slab) == SLAB:
                _naive_write(connection, slab, products)
                slab = []
        _naive_write(connection, slab, products)
        took = perf_counter() - started
    _forget(made, seller)
    return took


def _products(connection: psycopg.Connection[Any]) -> dict[tuple[str, ...], int]:
    rows = connection.execute(
        "SELECT game, set_name, product_name, coalesce(number, ''), id FROM product"
    )
    return {tuple(row[:4]): row[4] for row in rows}


def _money(text: str) -> Decimal | None:
    amount = Decimal(text) if text.strip() else None
    return amount or None


def _naive_row(seller: int, run: int, card: int, row: dict[str, str]) -> dict[str, Any]:
    market, low = _money(row["TCG Market Price"]), _money(row["TCG Low Price"])
    price, quantity = _money(row["TCG Marketplace Price"]), int(row["Total Quantity"])
    base = low or market
    target = None
    if base is not None and quantity:
        target = max(base.quantize(Decimal("0.01"), ROUND_CEILING), Decimal("0.01"))
    label = row["Condition"]
    return {
        "seller": seller, "run": run, "id": card, "listing": int(row["TCGplayer Id"]),
        "label": row["Product Line"],
        "line": NAME_BY_LABEL[row["Product Line"].casefold()], "set": row["Set Name"],
        "name": row["Product Name"],
        "title": row["Title"], "number": row["Number"], "rarity": row["Rarity"],
        "condition_label": label,
        "condition": "".join(word[0] for word in label.split()[:2]),
        "printing": "Foil" if "Foil" in label else "Normal",
        "market": market, "low": low, "direct_low": _money(row["TCG Direct Low"]), "price": price,
        "target": target,
        "low_with_shipping": _money(row["TCG Low Price With Shipping"]), "quantity": quantity,
        "photo": row["Photo URL"],
        "hash": hash(tuple(row.values())) & (2**62 - 1),
    }  # fmt: skip


NAIVE_CARD = """
    INSERT INTO card (seller_id, id, marketplace_id, listing_id, product_id, match, identity_hash,
        observed_at, priced_at,
        created_at, updated_at, quantity, gone, custom, price, market, low, low_with_shipping,
            direct_low, target_price,
        product_line, product_line_label, set_name, product_name, title, number, rarity, condition,
            condition_label, printing,
        language, photo_url)
    VALUES (%(seller)s, %(id)s, %(listing)s, %(listing)s, %(product)s, %(match)s, %(hash)s, now(),
        now(), now(), now(),
        %(quantity)s, %(quantity)s = 0, false, %(price)s, %(market)s, %(low)s,
            %(low_with_shipping)s, %(direct_low)s,
        %(target)s, %(line)s, %(label)s, %(set)s, %(name)s, %(title)s, %(number)s, %(rarity)s,
            %(condition)s,
        %(condition_label)s, %(printing)s, 'English', %(photo)s)
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE
    SET quantity = excluded.quantity, price = excluded.price,
        market = excluded.market, low = excluded.low, target_price = excluded.target_price
"""
NAIVE_CHANGE = """
    INSERT INTO price_change (seller_id, run_id, card_id, old_price, new_price)
    VALUES (%(seller)s, %(run)s, %(id)s, %(price)s, %(target)s) ON CONFLICT DO NOTHING
"""


def _naive_write(
    connection: psycopg.Connection[Any],
    slab: list[dict[str, Any]],
    products: dict[tuple[str, ...], int],
) -> None:
    for row in slab:
        known = products.get((row["line"], row["set"], row["name"], row["number"]))
        row["match"] = "matched" if known else "provisional"
        row["product"] = known or int.from_bytes(hashlib.md5(row["name"].encode()).digest()[:7])
    with connection.cursor() as cursor:
        cursor.executemany(NAIVE_CARD, slab)
        cursor.executemany(
            NAIVE_CHANGE, [row for row in slab if row["target"] and row["target"] != row["price"]]
        )
    connection.commit()


def upload(made: Ground, seller: CreatedSeller, data: bytes) -> tuple[float, dict[str, Any]]:
    """Seconds from the 202 until the upload is done, and its report."""
    client = Client(made.settings.bind, seller.api_key)
    status, _, body = client.request("POST", "/api/v1/sync", data, Content_Type="application/gzip")
    started = perf_counter()
    assert status == 202, body
    with made.admin() as connection:
        number = int(body.rpartition(b":")[2].strip(b" }"))
        deadline = monotonic() + 600
        while monotonic() < deadline:
            row = connection.execute(
                "SELECT state, report FROM upload"
                " WHERE seller_id = %s AND id = %s AND finished_at IS NOT NULL",
                [seller.seller_id, number],
            ).fetchone()
            if row is not None:
                took = perf_counter() - started
                assert row[0] in ("done", "awaiting_review"), row
                return took, row[1]
            sleep(0.02)  # looking more often takes a core from eight that import at a time
    raise RuntimeError("the import did not end")


def _forget(made: Ground, seller: int) -> None:
    """The next round must not pay for this one's rows."""
    with made.admin() as connection:
        for table in ("price_change", "price_observation", "card"):
            connection.execute(f"DELETE FROM {table} WHERE seller_id = {seller}")
            connection.execute(f"VACUUM {table}")
        connection.execute("CHECKPOINT")


def truth_of(made: Ground, seller: int) -> tuple[int, int, int]:
    """Rows, right ones and wrong ones: game, set, name, number and finish as the truth has them;
    provisional is right where the catalog lacks the product."""
    fields = ["game", "set_name", "product_name", "number"]
    with made.admin() as connection:
        cards = connection.execute(
            "SELECT c.listing_id, c.match, p.game, p.set_name, p.product_name, p.number, p.finish"
            f" FROM card c JOIN product p ON p.id = c.product_id WHERE c.seller_id = {seller}"
        ).fetchall()
        known = connection.execute(
            "SELECT DISTINCT game, set_name, product_name, number FROM product"
            " WHERE NOT provisional"
        ).fetchall()
    kinds = {"sku": pl.Int64, "match": pl.String, **dict.fromkeys([*fields, "finish"], pl.String)}
    found = pl.DataFrame(cards, schema=kinds, orient="row")
    truth = pl.read_parquet(made.truth).select(
        "sku", *(pl.col(name).alias(f"true_{name}") for name in [*fields, "finish"])
    )
    exists = pl.DataFrame(
        known, schema={f"true_{name}": pl.String for name in fields}, orient="row"
    ).with_columns(in_catalog=True)
    judged = found.join(truth.with_columns(pl.col("sku").cast(pl.Int64)), on="sku").join(
        exists, on=[f"true_{name}" for name in fields], how="left", nulls_equal=True
    )
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"true_{name}")) for name in fields)
    same &= pl.col("finish").is_null() | (pl.col("finish") == pl.col("true_finish"))
    matched = pl.col("match") == "matched"
    right = (matched & same) | (~matched & pl.col("in_catalog").is_null())
    return judged.height, *judged.select(right=right.sum(), wrong=(matched & ~same).sum()).row(0)


def measure(data: Path, rows: int, rounds: int, budgeted: int = 0) -> Report:
    report = Report("Import of an inventory")
    with ground.ground(data, rows) as made:
        file = made.inventory.read_bytes()
        again = ground.some_changed(made.inventory, 15)
        times: dict[str, list[float]] = {
            name: [] for name in ("floor", "naive", "first", "at once", "again")
        }
        peaks: list[int] = []
        for turn in range(rounds):
            for _ in range(2):
                times["floor"].append(floor(made, file))
            made.settle()
            seller = made.new_seller()
            with ground.service(made, workers=1) as children:
                process = psutil.Process(
                    next(
                        child.process.pid
                        for child in children
                        if child.name.startswith("worker") and child.process
                    )
                )
                _warm_up(made)
                idle = ground.memory(process)
                took, told = upload(made, seller, file)
                times["first"].append(took)
                if turn == 0:
                    report.note(
                        f"{told['rows']:,} rows: {told['matched']:,} matched,"
                        f" {told['provisional']:,} provisional, {told['changed']:,} changed"
                    )
                made.settle()
                took, _ = upload(made, seller, again)
                times["at once"].append(took)
                # Hours lie between two syncs of a shop: autovacuum has been there a minute after
                # the first.
                with made.admin() as connection:
                    connection.execute("VACUUM card")
                made.settle()
                took, told = upload(made, seller, file)
                times["again"].append(took)
                peaks.append(ground.peak_memory(process))
                report.note(
                    f"round {turn + 1}: floor {times['floor'][-1]:.2f} s,"
                    f" first {times['first'][-1]:.2f} s, at once {times['at once'][-1]:.2f} s,"
                    f" again {took:.2f} s ({told['changed']:,} asked),"
                    f" worker peak {peaks[-1] / MB:.0f} MB, idle {idle / MB:.0f} MB"
                )
            if turn == 0:
                count, right, wrong = truth_of(made, seller.seller_id)
            _forget(made, seller.seller_id)
            times["floor"].append(floor(made, file))
            if turn == 0 and not budgeted:
                times["naive"].append(naive(made, file))
    middle = {}
    for name, values in times.items():
        if values:
            report.note(f"{name:<6} {spread(values)}")
            middle[name] = statistics.median(values)
    for name, what in (("first", "first import"), ("again", "again with 15 % changed")):
        report.figure(what, middle[name], "s")
        report.figure(f"{what} / floor", middle[name] / middle["floor"])
    if not budgeted:
        report.figure("csv module + executemany / first import", middle["naive"] / middle["first"])
    report.note(
        f"again at once, before any vacuum / floor: {middle['at once'] / middle['floor']:.2f} x"
    )
    report.figure("worker peak memory", max(peaks) / MB, "MB")
    report.figure("rows right by the truth", right / count * 100, "%")
    report.figure("rows matched to a wrong product", wrong, "")
    return report


def _warm_up(made: Ground) -> None:
    """A worker lives long: its first job's imports and connections are no part of an import."""
    plain = gzip.decompress(made.inventory.read_bytes()[: 1 << 30])
    head = b"".join(plain.splitlines(keepends=True)[:200])
    upload(made, made.new_seller(), gzip.compress(head))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    ground.main(measure, __doc__, rounds=3, budgeted=0)

"""`python bench/price_event.py [--rounds 5]`: a repricing event of 50,000 rows over HTTP, against a
raw ASGI program on granian that reads the same body into typed rows; and the moment when all of its
prices are moved, against a COPY of the same 50,000 rows into a table with the cards' indexes.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import psycopg

import ground
import import_inventory
from cardsync.platform import clock
from ground import Client, Report, spread

ROWS = 50_000
_PATH = "/api/v1/repricing_events"
_TWIN = """
    CREATE TABLE bench_card (LIKE card INCLUDING INDEXES INCLUDING GENERATED)
"""


def body_of(cards: list[tuple[int, str]], turn: int) -> bytes:
    rows = [
        {"marketplace_id": id, "old_price": price, "new_price": f"{n % 900 + turn + 1}.25"}
        for n, (id, price) in enumerate(cards)
    ]
    told = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": len(rows),
        "file_sha256": f"{turn:064x}",
        "rows": rows,
    }
    return json.dumps(told).encode()


def sent(client: Client, body: bytes) -> tuple[float, int]:
    """(seconds until the answer, the event's id)."""
    started = perf_counter()
    status, _, answer = client.request("POST", _PATH, body, Content_Type="application/json")
    took = perf_counter() - started
    assert status in (201, 202), (status, answer[:300])
    return took, int(json.loads(answer)["id"])


def settled(connection: psycopg.Connection[Any], seller: int, event: int) -> None:
    asked = "SELECT settled_at IS NOT NULL FROM repricing_event WHERE seller_id = %s AND id = %s"
    while not connection.execute(asked, (seller, event)).fetchone()[0]:  # type: ignore[index]
        sleep(0.01)


def copied(connection: psycopg.Connection[Any], seller: int) -> float:
    """The seconds of a COPY of so many cards into a table with the same indexes."""
    columns = connection.execute(
        "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
        " WHERE table_name = 'card' AND is_generated = 'NEVER'"
    ).fetchone()
    assert columns
    rows = f"SELECT {columns[0]} FROM card WHERE seller_id = {seller} ORDER BY id LIMIT {ROWS}"
    with connection.cursor().copy(f"COPY ({rows}) TO STDOUT") as out:
        data = b"".join(bytes(part) for part in out)
    connection.execute("DROP TABLE IF EXISTS bench_card")
    connection.execute(_TWIN)
    started = perf_counter()
    with connection.cursor().copy(f"COPY bench_card ({columns[0]}) FROM STDIN") as into:
        into.write(data)
    took = perf_counter() - started
    connection.execute("DROP TABLE bench_card")
    return took


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("A repricing event of 50,000 rows")
    times: dict[str, list[float]] = {name: [] for name in ("answer", "reading", "applied", "COPY")}
    with ground.ground(data, rows) as made:
        seller = made.new_seller(sync_mode="full")
        with (
            ground.service(made, workers=1),
            ground.floor_server(made, "read") as (bind, _),
            made.admin() as connection,
        ):
            import_inventory.upload(made, seller, made.inventory.read_bytes())
            cards = connection.execute(
                "SELECT marketplace_id, price::text FROM card WHERE seller_id = %s AND NOT gone"
                " AND price IS NOT NULL AND marketplace_id > 0 ORDER BY id LIMIT %s",
                (seller.seller_id, ROWS),
            ).fetchall()
            assert len(cards) == ROWS, len(cards)
            made.settle()
            ours, floor = Client(made.settings.bind, seller.api_key), Client(bind)
            for turn in range(rounds + 1):
                body = body_of(cards, turn)
                plain, _ = sent(floor, body)
                started = perf_counter()
                took, event = sent(ours, body)
                settled(connection, seller.seller_id, event)
                applied = perf_counter() - started
                if turn:
                    both = (took, plain, applied, copied(connection, seller.seller_id))
                    for name, value in zip(times, both, strict=True):
                        times[name].append(value)
    for name, values in times.items():
        report.note(f"{name:<8} {spread(values, 'ms', 1000)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure(
        "answer to an event of 50,000 rows / reading it", middle["answer"] / middle["reading"]
    )
    report.figure("its prices applied / COPY of its rows", middle["applied"] / middle["COPY"])
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

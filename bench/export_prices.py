"""`python bench/export_prices.py [--rounds 9]`: the price-updates export of 45,000 changes over
HTTP, against a raw ASGI program on granian that streams `COPY (SELECT …) TO STDOUT` of the same
rows through psycopg; and the 304 against a heartbeat.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import perf_counter

import psutil

import ground
import import_inventory
from cardsync.agents.seller_state.exported import EXPORTED, FINGERPRINT_SQL
from ground import MB, Client, Ground, Report, spread

CHANGES = 45_000
POLLS = 300


def set_the_scene(made: Ground, seller: int) -> str:
    """Exactly CHANGES cards ask for another price.

    Returns the COPY of those rows, as plain as it gets.
    """
    exported = EXPORTED.format(seller_id=seller)
    with made.admin() as connection:
        connection.execute(f"UPDATE card SET target_price = price WHERE seller_id = {seller}")
        connection.execute(
            f"UPDATE card SET target_price = price + 0.01 WHERE seller_id = {seller} AND id IN"
            f" (SELECT id FROM card WHERE seller_id = {seller} AND NOT gone AND price IS NOT NULL"
            f" ORDER BY md5(id::text) LIMIT {CHANGES})"
        )
        connection.execute("VACUUM ANALYZE card")
        connection.execute(
            "UPDATE sync_state SET export_fingerprint ="
            f" md5(({FINGERPRINT_SQL.format(exported=exported)})) WHERE seller_id = {seller}"
        )
        connection.execute("CHECKPOINT")
    columns = (
        "listing_id, product_line_label, set_name, product_name, title, number, rarity,"
        " condition_label, market, direct_low,"
        " low_with_shipping, low, quantity, 0, target_price, photo_url"
    )
    return (
        f"COPY (SELECT {columns} FROM card c WHERE {exported}"
        " ORDER BY listing_id) TO STDOUT WITH (FORMAT csv)"
    )


def timed(
    client: Client, method: str, path: str, expected: int, **headers: str
) -> tuple[float, dict[str, str], bytes]:
    started = perf_counter()
    status, given, body = client.request(
        method, path, b"{}" if method == "POST" else None, **headers
    )
    took = perf_counter() - started
    assert status == expected, (status, body[:200])
    return took, given, body


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Export of price updates")
    with ground.ground(data, rows) as made:
        seller = made.new_seller(sync_mode="read_only")
        with ground.service(made, workers=1):
            import_inventory.upload(made, seller, made.inventory.read_bytes())
        copy = set_the_scene(made, seller.seller_id)
        floor_env = {"seller": str(seller.seller_id), "copy": copy}
        path = "/api/v1/export/price-updates"
        times: dict[str, list[float]] = {
            name: [] for name in ("export", "floor", "304", "heartbeat")
        }
        cpu = {"304": 0.0, "heartbeat": 0.0}
        with (
            ground.service(made, workers=0) as children,
            ground.floor_server(made, "export", **floor_env) as (bind, _),
        ):
            assert children[0].process is not None
            web = psutil.Process(children[0].process.pid)
            ours, floor = Client(made.settings.bind, seller.api_key), Client(bind)
            timed(ours, "POST", "/api/v1/heartbeat", 200, Content_Type="application/json")
            idle = ground.memory(web)
            for turn in range(rounds + 1):
                took, given, body = timed(ours, "GET", path, 200)
                plain, _, copied = timed(floor, "GET", "/", 200)
                assert body.count(b"\r\n") - 1 == copied.count(b"\n") == CHANGES
                if turn:
                    times["export"].append(took)
                    times["floor"].append(plain)
            grown = ground.peak_memory(web) - idle
            for _ in range(3):
                for name in cpu:
                    before = ground.cpu_seconds(web)
                    for _ in range(POLLS):
                        if name == "304":
                            took, _, _ = timed(ours, "GET", path, 304, If_None_Match=given["etag"])
                        else:
                            took, _, _ = timed(
                                ours,
                                "POST",
                                "/api/v1/heartbeat",
                                200,
                                Content_Type="application/json",
                            )
                        times[name].append(took)
                    cpu[name] += ground.cpu_seconds(web) - before
    for name, values in times.items():
        report.note(f"{name:<9} {spread(values, 'ms', 1000)}")
    report.note(
        f"CPU of the web process: 304 {cpu['304'] / POLLS / 3 * 1000:.2f} ms,"
        f" heartbeat {cpu['heartbeat'] / POLLS / 3 * 1000:.2f} ms"
    )
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("export of 45,000 changes / COPY", middle["export"] / middle["floor"])
    report.figure("304 / heartbeat", middle["304"] / middle["heartbeat"])
    report.figure("web memory over idle, export", grown / MB, "MB")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=9)

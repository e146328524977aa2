"""`python bench/accept_upload.py [--rounds 15]`: the 202 for the gzipped inventory through the
real web process, against a raw ASGI program on granian that receives, inflates with isal, writes
with fsync and commits one row; same folder, same database, in turns.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import perf_counter

import psutil

import ground
from ground import MB, Client, Report, spread


def timed(client: Client, body: bytes) -> float:
    started = perf_counter()
    status, _, answer = client.request(
        "POST", "/api/v1/sync", body, Content_Type="application/gzip"
    )
    took = perf_counter() - started
    assert status == 202, answer
    return took


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Accepting an upload")
    with ground.ground(data, rows, catalogs=False) as made:
        body = made.inventory.read_bytes()
        seller = made.new_seller()
        folder = made.settings.data_dir / "objects" / "floor"
        folder.mkdir(parents=True)
        with made.admin() as connection:
            connection.execute(
                "CREATE TABLE floor_upload"
                " (id bigserial PRIMARY KEY, path text, at timestamptz DEFAULT now())"
            )
            connection.execute(
                "GRANT INSERT ON floor_upload TO cardsync_app;"
                " GRANT USAGE ON floor_upload_id_seq TO cardsync_app"
            )
        # Without a worker: the imports of what is accepted would run beside the measurement.
        with (
            ground.service(made, workers=0) as children,
            ground.floor_server(made, "accept", folder=str(folder)) as (bind, _),
        ):
            assert children[0].process is not None
            web = psutil.Process(children[0].process.pid)
            ours, floor = Client(made.settings.bind, seller.api_key), Client(bind, seller.api_key)
            ours.request("POST", "/api/v1/heartbeat", b"{}", Content_Type="application/json")
            idle = ground.memory(web)
            times: dict[str, list[float]] = {"ours": [], "floor": []}
            for turn in range(rounds + 1):
                for name, client in (("ours", ours), ("floor", floor)):
                    took = timed(client, body)
                    if turn:
                        times[name].append(took)
            grown = ground.peak_memory(web) - idle
    report.note(
        f"body {len(body) / MB:.1f} MB gzip; web idle {idle / MB:.0f} MB, peak +{grown / MB:.0f} MB"
    )
    for name, values in times.items():
        report.note(f"{name:<6} {spread(values, 'ms', 1000)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("202 / (receive + inflate + fsync + commit)", middle["ours"] / middle["floor"])
    report.figure("web memory over idle, uploads", grown / MB, "MB")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=15)

"""`python bench/tracing.py [--rows 60000] [--rounds 30]`: the same requests and the same imports
with traces sent to a receiver, with logs as well, and without both, in turns.

Times are of the caller, CPU time is of the web or worker process. Other programs on the machine
make times uncertain, CPU time less so. The receiver is a process of its own and keeps nothing.
Reads and polls go as they do with the default TRACE_RATIO; uploads and imports are traced from one
end to the other, as the agent's are.
"""

from __future__ import annotations

import gzip
import os
import secrets
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

import psutil

import ground
import import_inventory
from ground import Client, Ground, Report

IN_A_ROW = 40
# The signals that each side sends by OTLP.
SIDES = {"off": "", "traces": "traces,metrics", "all": "traces,metrics,logs"}
RECEIVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Takes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        print(self.path, flush=True)
server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def receiver(folder: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and the file in which it names what came."""
    told = folder / "received"
    with told.open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=out, stderr=out)
    try:
        while not (lines := told.read_text().splitlines()):
            assert process.poll() is None
        yield f"http://127.0.0.1:{lines[0]}", told
    finally:
        process.terminate()
        process.wait()


@contextmanager
def served(
    made: Ground, otlp: str, signals: str, workers: int
) -> Iterator[tuple[str, list[psutil.Process]]]:
    """The address and the processes, web first, of a service that exports or does not."""
    settings = made.settings.model_copy(update={"bind": f"127.0.0.1:{ground.free_port()}"})
    one = Ground(made.folder, settings, made.inventory, made.truth)
    os.environ |= {"CARDSYNC_LOG_LEVEL": "info", "CARDSYNC_LOG_FORMAT": "json"}
    if signals:
        os.environ |= {"CARDSYNC_OTLP_URL": otlp, "CARDSYNC_OTLP_SIGNALS": signals}
    with ground.service(one, workers=workers) as children:
        os.environ.pop("CARDSYNC_OTLP_URL", None)
        ids = [child.process.pid for child in children if child.process]
        yield settings.bind, [psutil.Process(number) for number in ids]


def traceparent() -> str:
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def heartbeat(client: Client) -> None:
    status, _, body = client.request(
        "POST", "/api/v1/heartbeat", b"{}", Content_Type="application/json"
    )
    assert status == 200, body


def status_read(client: Client) -> None:
    assert client.request("GET", "/api/v1/status")[0] == 200


def cards_read(client: Client) -> None:
    status, _, body = client.request("GET", "/api/cards?limit=50")
    assert status == 200, body


def accepted(body: bytes) -> Callable[[Client], None]:
    def accept(client: Client) -> None:
        status, _, told = client.request(
            "POST", "/api/v1/sync", body, Content_Type="application/gzip", traceparent=traceparent()
        )
        assert status == 202, told

    return accept


def some_rows(inventory: Path, rows: int) -> bytes:
    lines = gzip.decompress(inventory.read_bytes()).split(b"\r\n", rows + 1)[: rows + 1]
    return gzip.compress(b"\r\n".join(lines) + b"\r\n")


def requests(report: Report, made: Ground, otlp: str, key: str, rounds: int) -> None:
    kinds: dict[str, Callable[[Client], None]] = {
        "heartbeat": heartbeat,
        "status": status_read,
        "50 cards": cards_read,
        "202 of an upload of 1,000 rows": accepted(some_rows(made.inventory, 1000)),
    }
    with ExitStack() as stack:
        sides = {}
        for name, signals in SIDES.items():
            bind, [web, *_] = stack.enter_context(served(made, otlp, signals, 0))
            sides[name] = (Client(bind, key), web)
        for kind, ask in kinds.items():
            times: dict[str, list[float]] = {name: [] for name in SIDES}
            costs: dict[str, list[float]] = {name: [] for name in SIDES}
            for turn in range(rounds + 1):
                for name in SIDES if turn % 2 else reversed(SIDES):
                    client, web = sides[name]
                    used, began = ground.cpu_seconds(web), perf_counter()
                    for _ in range(IN_A_ROW):
                        ask(client)
                    if turn:
                        times[name].append((perf_counter() - began) / IN_A_ROW)
                        costs[name].append((ground.cpu_seconds(web) - used) / IN_A_ROW)
            tell(report, kind, times, costs)


def imports(report: Report, made: Ground, otlp: str, rounds: int) -> None:
    """Each in a new worker, which has imported something before."""
    file, first = made.inventory.read_bytes(), some_rows(made.inventory, 1000)
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    costs: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(rounds):
        for name in SIDES if turn % 2 else reversed(SIDES):
            made.settle()
            with served(made, otlp, SIDES[name], 1) as (bind, [_, worker, *_]):
                one = made.settings.model_copy(update={"bind": bind})
                there = Ground(made.folder, one, made.inventory, made.truth)
                import_inventory.upload(there, made.new_seller(), first)
                used = ground.cpu_seconds(worker)
                took, _ = import_inventory.upload(there, made.new_seller(), file)
                times[name].append(took)
                costs[name].append(ground.cpu_seconds(worker) - used)
    tell(report, "import", times, costs)


def tell(
    report: Report, kind: str, times: dict[str, list[float]], costs: dict[str, list[float]]
) -> None:
    for name in times:
        report.note(
            f"{kind:<32} {name:<4} {ground.spread(times[name], 'ms', 1000)},"
            f" CPU {statistics.fmean(costs[name]) * 1000:.2f} ms"
        )
    for name in ("traces", "all"):
        pairs = zip(times[name], times["off"], strict=True)
        middle = statistics.median(on / off for on, off in pairs)
        cpu = statistics.fmean(costs[name]) / max(statistics.fmean(costs["off"]), 1e-9)
        if name == "traces":
            report.figure(f"{kind}: time, tracing on / off", middle)
            report.figure(f"{kind}: CPU, tracing on / off", cpu)
        else:
            report.note(f"{kind:<32} with logs, too: time {middle:.2f} x, CPU {cpu:.2f} x")


def measure(data: Path, rows: int, rounds: int, imported: int = 3) -> Report:
    report = Report("Tracing")
    with ground.ground(data, rows) as made, receiver(made.folder) as (otlp, told):
        seller = made.new_seller()
        with served(made, otlp, "", 1) as (bind, _):
            one = made.settings.model_copy(update={"bind": bind})
            there = Ground(made.folder, one, made.inventory, made.truth)
            import_inventory.upload(there, seller, made.inventory.read_bytes())
        requests(report, made, otlp, seller.api_key, rounds)
        with made.admin() as connection:
            connection.execute("DELETE FROM work_due")
            connection.execute("DELETE FROM procrastinate_jobs")
        imports(report, made, otlp, imported)
        came = told.read_text().splitlines()
        counts = {path: came.count(path) for path in sorted({*came[1:]})}
        report.note(f"the receiver got {counts}")
        assert counts.get("/v1/traces"), came
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=30, imported=3)

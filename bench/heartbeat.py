"""`python bench/heartbeat.py [--rounds 5]`: heartbeats through the real stack, 1 worker, 32
connections, against a raw ASGI program on granian doing the same work. wrk makes the load where
it is installed; the two take turns. Rate and CPU time per request are printed.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import statistics
import subprocess
from pathlib import Path
from time import monotonic

import psutil

import ground
from ground import Client, Report

CONNECTIONS = 32
SECONDS = 4
BODY = '{"version":"1.2.3","platform":"linux/x86_64"}'


def with_wrk(bind: str, key: str, script: Path) -> float:
    """Requests a second."""
    script.write_text(
        f"wrk.method = 'POST'\nwrk.body = '{BODY}'\n"
        "wrk.headers['Content-Type'] = 'application/json'\n"
        f"wrk.headers['Authorization'] = 'Bearer {key}'\n"
    )
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{SECONDS}s",
        "-s",
        str(script),
        f"http://{bind}/api/v1/heartbeat",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in told, told
    found = re.search(r"Requests/sec:\s+([0-9.]+)", told)
    assert found is not None, told
    return float(found[1])


def with_sockets(bind: str, key: str) -> float:
    """The same with as little Python as it takes: each connection writes the same bytes and
    counts answers.
    """
    head = f"POST /api/v1/heartbeat HTTP/1.1\r\nHost: {bind}\r\nAuthorization: Bearer {key}\r\n"
    request = (
        f"{head}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
    ).encode()
    host, _, port = bind.rpartition(":")
    ending = monotonic() + SECONDS

    async def beat() -> int:
        reader, writer = await asyncio.open_connection(host, int(port))
        count = 0
        while monotonic() < ending:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = re.search(rb"content-length: ([0-9]+)", answer, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            count += 1
        writer.close()
        return count

    async def all_of_them() -> int:
        return sum(await asyncio.gather(*(beat() for _ in range(CONNECTIONS))))

    return asyncio.run(all_of_them()) / SECONDS


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Heartbeat")
    load = "wrk" if shutil.which("wrk") else "sockets"
    with ground.ground(data, rows, catalogs=False) as made:
        seller = made.new_seller()
        script = made.folder / "heartbeat.lua"
        rates: dict[str, list[float]] = {"ours": [], "floor": []}
        costs: dict[str, list[float]] = {"ours": [], "floor": []}
        with (
            ground.service(made, workers=0) as children,
            ground.floor_server(made, "heartbeat") as (bind, floor),
        ):
            assert children[0].process is not None
            servers = {
                "ours": (made.settings.bind, psutil.Process(children[0].process.pid)),
                "floor": (bind, floor),
            }
            for address, _ in servers.values():
                status, _, body = Client(address, seller.api_key).request(
                    "POST", "/api/v1/heartbeat", BODY.encode(), Content_Type="application/json"
                )
                assert status == 200, body
            for turn in range(rounds + 1):
                for name, (address, process) in servers.items():
                    before = ground.cpu_seconds(process)
                    rate = (
                        with_wrk(address, seller.api_key, script)
                        if load == "wrk"
                        else with_sockets(address, seller.api_key)
                    )
                    cost = (ground.cpu_seconds(process) - before) / (rate * SECONDS) * 1000
                    if turn:
                        rates[name].append(rate)
                        costs[name].append(cost)
    for name in rates:
        report.note(
            f"{name:<6} {statistics.median(rates[name]):,.0f} requests/s (max"
            f" {max(rates[name]):,.0f}),"
            f" {statistics.median(costs[name]):.3f} ms CPU a request (min {min(costs[name]):.3f}),"
            f" load by {load}"
        )
    ratio = statistics.median(
        ours / floor for ours, floor in zip(rates["ours"], rates["floor"], strict=True)
    )
    cpu = statistics.median(
        floor / ours for ours, floor in zip(costs["ours"], costs["floor"], strict=True)
    )
    report.figure("heartbeats a second / raw ASGI", ratio)
    report.figure("CPU of raw ASGI / CPU of a heartbeat", cpu)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

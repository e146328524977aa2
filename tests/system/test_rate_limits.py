"""Real web processes on one database: together they admit what one may, and a killed one takes
next to nothing of it along.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import psutil
import pytest
from tests.system.processes import PROGRAM, Seller, Server, a_folder, free_port, kill, until

from cardsync.operations.processes import embedded

pytestmark = pytest.mark.day

PROCESSES, BURST = 4, 40
# One of several processes may leave so much of a burst unsaid.
UNSAID = BURST // 8


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder, RATE_LIMIT_GENERAL=f"1/min:{BURST}") as started:
        yield started


@contextmanager
def web_processes(
    server: Server, count: int
) -> Iterator[list[tuple[subprocess.Popen[bytes], str]]]:
    """Start more web processes beside the server's own, on its database: (process, URL)."""
    with ExitStack() as stack, server.log.open("ab") as log:
        database = stack.enter_context(embedded.running(server.data_dir)).url()
        started = []
        for _ in range(count):
            bind = f"127.0.0.1:{free_port()}"
            env = server.env | {"CARDSYNC_BIND": bind, "CARDSYNC_DATABASE_URL": database}
            process = subprocess.Popen(
                [*PROGRAM, "web"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            stack.callback(process.wait, 30)
            stack.callback(kill_tree, process)
            started.append((process, f"http://{bind}"))
        until(
            lambda: all(is_ready(url) for _, url in started),
            lambda: f"{count} web processes; the log says:\n{server.said()[-2000:]}",
            90,
        )
        yield started


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(process.pid)
        kill(top, *top.children(recursive=True))


def is_ready(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz", timeout=30).status_code == 200
    return False


def heartbeat(url: str, seller: Seller) -> int:
    answer = httpx.post(
        f"{url}/api/v1/heartbeat",
        headers={"Authorization": f"Bearer {seller.api_key}"},
        timeout=httpx.Timeout(90),
    )
    assert answer.status_code in (200, 429), answer.text
    return answer.status_code


@pytest.mark.night
def test_processes_share_a_limit_and_a_killed_one_takes_next_to_nothing_along(
    server: Server,
) -> None:
    seller, neighbour = server.seller(), server.seller()
    with web_processes(server, PROCESSES) as running:
        urls = [url for _, url in running]
        admitted = [heartbeat(url, seller) for _ in range(BURST) for url in urls].count(200)
        assert BURST <= admitted <= BURST + (PROCESSES - 1) * UNSAID + minutes_of(server)
        kill_tree(running[0][0])
        assert [heartbeat(url, neighbour) for url in urls[1:]] == [200] * (PROCESSES - 1)
    # Whoever starts later learns from the database what was spent.
    with web_processes(server, 1) as running:
        again = [heartbeat(running[0][1], seller) for _ in range(BURST)].count(200)
        assert again <= 2 * UNSAID


def minutes_of(server: Server) -> int:
    """A generous count of requests that the rate itself admits while the test runs."""
    assert server.process is not None
    return 1 + int((time.time() - psutil.Process(server.process.pid).create_time()) // 60)

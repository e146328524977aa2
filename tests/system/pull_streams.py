"""Opens many event streams of one pull at once, each of a phone with a link of its own. The first
sends a mark, and the program prints the seconds until each stream has reported it, and the streams'
processes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import httpx
import psutil


def seconds_to_each(
    links: Sequence[str], item: int, pids: Sequence[int]
) -> tuple[set[int], list[float]]:
    # A browser of the same test may have an event loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _measured(links, item, pids)).result()


async def _measured(
    links: Sequence[str], item: int, pids: Sequence[int]
) -> tuple[set[int], list[float]]:
    port = httpx.URL(links[0]).port
    ready = [asyncio.Event() for _ in links]
    told: list[float] = [0.0] * len(links)

    async def listen(number: int, link: str) -> None:
        async with (
            httpx.AsyncClient(timeout=60) as http,
            http.stream("GET", f"{link}/changes") as answer,
        ):
            assert answer.status_code == 200
            heard = 0
            async for line in answer.aiter_lines():
                if line == "event: changed":
                    heard += 1
                    ready[number].set()
                    if heard == 2:
                        told[number] = monotonic()
                        return

    async with asyncio.TaskGroup() as group:
        for number, link in enumerate(links):
            group.create_task(listen(number, link))
        for event in ready:
            await event.wait()
        serving = {
            pid
            for pid in pids
            for one in psutil.Process(pid).net_connections("tcp")
            if one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED
        }
        mark = {"id": secrets.token_hex(8), "kind": "defer", "item_id": item, "sequence": 1}
        body = {"device": "measured-1", "person": "", "marks": [mark]}
        async with httpx.AsyncClient(timeout=60) as http:
            began = monotonic()
            answer = await http.post(f"{links[0]}/marks", json=body)
            assert answer.status_code == 200, answer.text
    return serving, [moment - began for moment in told]

"""An assistant in tests: raw messages of both versions of the protocol, and the official client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

NEW, OLD = "2026-07-28", "2025-11-25"
VERSIONS = (NEW, OLD)
PREFIX = "io.modelcontextprotocol/"


def message(
    method: str, params: dict[str, Any] | None = None, version: str = OLD
) -> dict[str, Any]:
    """The options of a request that carries one message."""
    params = dict(params or {})
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    if version == NEW:
        params["_meta"] = {f"{PREFIX}protocolVersion": NEW, f"{PREFIX}clientCapabilities": {}}
        headers["Mcp-Method"] = method
        if "name" in params:
            headers["Mcp-Name"] = str(params["name"])
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return {"json": body, "headers": headers}


async def sent(
    http: httpx.AsyncClient, tool: str, version: str = OLD, /, **arguments: Any
) -> httpx.Response:
    """The raw answer to a call of a tool."""
    params = {"name": tool, "arguments": arguments}
    return await http.post("/mcp", **message("tools/call", params, version))


async def told(
    http: httpx.AsyncClient, tool: str, version: str = OLD, /, **arguments: Any
) -> tuple[bool, list[str]]:
    """Whether the answer is an error, and its texts."""
    answer = await sent(http, tool, version, **arguments)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return result["isError"], [block["text"] for block in result["content"]]


async def data(
    http: httpx.AsyncClient, tool: str, version: str = OLD, /, **arguments: Any
) -> dict[str, Any]:
    """The data of an answer that is no error."""
    is_error, texts = await told(http, tool, version, **arguments)
    assert not is_error, texts
    found: dict[str, Any] = json.loads(texts[1])
    return found


async def refused(
    http: httpx.AsyncClient, tool: str, version: str = OLD, /, **arguments: Any
) -> str:
    """The text of a refusal."""
    is_error, texts = await told(http, tool, version, **arguments)
    assert is_error, texts
    return texts[-1]


@asynccontextmanager
async def official(http: httpx.AsyncClient, app: Any, mode: str) -> AsyncIterator[Client]:
    """The client of the protocol's own package, against the application in this process."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"Authorization": http.headers["Authorization"]}
    async with httpx2.AsyncClient(
        transport=transport, base_url=str(http.base_url), headers=headers
    ) as inner:
        url = f"{str(http.base_url).rstrip('/')}/mcp"
        streams = streamable_http_client(url, http_client=inner)
        async with Client(streams, mode=mode) as client:
            yield client

"""Passes an assistant's messages on to the server: one JSON-RPC message per line on standard input,
the server's answers on standard output, with the agent's key.

An error becomes the answer to its message, and one sentence on standard error. The command ends
when standard input ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, TextIO

import httpx

from cardsync_agent import __version__

# The server stops an assistant's program (the tool `run`) a little earlier than this.
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
AT_ONCE = 8
LONGEST_LINE = 2_000_000
PARSE_ERROR, SERVER_ERROR = -32700, -32000
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
Message = dict[str, Any]


class Proxy:
    """The proxy of one assistant, which passes on several lines at the same time."""

    def __init__(self, server: str, key: str, output: TextIO, trouble: TextIO) -> None:
        self._output, self._trouble = output, trouble
        self._writes = Lock()
        self._version: str | None = None
        headers = {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "User-Agent": f"cardsync-agent/{__version__}",
        }
        self._http = httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT)

    def run(self, lines: Iterable[str]) -> None:
        """Pass on every line, and return when the last line is answered."""
        with self._http, ThreadPoolExecutor(AT_ONCE) as threads:
            for line in lines:
                if not line.strip():
                    continue
                message = self._read(line)
                if message is None:
                    continue
                if message.get("method") == "initialize":
                    # Later messages need the version that `initialize` negotiates.
                    self._pass_on(message, line)
                else:
                    threads.submit(self._pass_on, message, line)

    def _read(self, line: str) -> Message | None:
        try:
            message = json.loads(line) if len(line) <= LONGEST_LINE else None
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            return message
        self._refuse(None, PARSE_ERROR, "a line on standard input is no JSON-RPC message")
        return None

    def _pass_on(self, message: Message, line: str) -> None:
        try:
            answer = self._http.post("/mcp", content=line.encode(), headers=self._headers(message))
        except httpx.HTTPError as failure:
            self._refuse(message, SERVER_ERROR, f"the server cannot be reached: {failure}")
            return
        except Exception as failure:
            self._refuse(message, SERVER_ERROR, f"the message cannot be sent: {failure}")
            return
        told = _json(answer)
        if isinstance(told, dict) and told.get("jsonrpc") == "2.0":
            if message.get("method") == "initialize":
                self._agree(told)
            self._write(told)
        elif answer.status_code >= 400:
            self._refuse(message, SERVER_ERROR, _sentence(answer, told))
        elif "id" in message:
            self._refuse(message, SERVER_ERROR, "the server's answer is no JSON-RPC message")

    def _headers(self, message: Message) -> dict[str, str]:
        """Return the headers with the message's version, method and name, which the protocol
        requires.
        """
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        stated = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        version = stated or self._version
        headers = {"MCP-Protocol-Version": version} if isinstance(version, str) else {}
        if stated and isinstance(method, str):
            headers["Mcp-Method"] = method
            name = params.get(_NAMED.get(method, ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = name
        return headers

    def _agree(self, answer: Message) -> None:
        result = answer.get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        self._version = version if isinstance(version, str) else None

    def _refuse(self, message: Message | None, code: int, sentence: str) -> None:
        with self._writes:
            self._trouble.write(f"cardsync-agent: {sentence}\n")
            self._trouble.flush()
        # A notification gets no answer.
        if message is None or "id" in message:
            error = {"code": code, "message": sentence}
            self._write({"jsonrpc": "2.0", "id": (message or {}).get("id"), "error": error})

    def _write(self, message: Message) -> None:
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
        with self._writes:
            self._output.write(f"{line}\n")
            self._output.flush()


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _sentence(answer: httpx.Response, told: Any) -> str:
    told = told if isinstance(told, dict) else {}
    code, error = told.get("code"), told.get("error")
    if answer.status_code == 401:
        return "the server does not accept the API key"
    return f"the server refused with {answer.status_code} {code or ''}: {error or 'no reason'}"

"""Answers the protocol's messages: the lists of tools and prompts, and the calls of both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import mcp_types as types
import msgspec
from litestar.types import Receive, Scope, Send
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from cardsync import __version__
from cardsync.assistant import code_mode, prompts, tool_answers, tools
from cardsync.assistant.refusals import Refusal
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

INSTRUCTIONS: Final = (
    "A trading-card shop: its stock, prices, orders and lists. Read before you write; show what"
    " will change and ask. Prices change by plans_propose: dry_run first. A plan or write that"
    " waits has a confirm_url: give it to the seller, who decides; then read the outcome with"
    " waiting_read. Many calls are one program of the tool run. " + tool_answers.DATA
)


class _Named(msgspec.Struct):
    name: str
    arguments: JsonObject | None = None
    meta: JsonObject | None = msgspec.field(default=None, name="_meta")


class _Call(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Named


class _Text(msgspec.Struct):
    text: str
    type: str = "text"


class _Told(msgspec.Struct, rename="camel", omit_defaults=True):
    content: list[_Text]
    is_error: bool
    result_type: str | None = None
    meta: JsonObject | None = msgspec.field(default=None, name="_meta")


class _Result(msgspec.Struct):
    id: int | str
    result: _Told
    jsonrpc: str = "2.0"


_calls: Final = msgspec.json.Decoder(_Call)
_LISTS: Final[tuple[Literal["tools/list", "prompts/list"], ...]] = ("tools/list", "prompts/list")
_OF_2025: Final = {None, *HANDSHAKE_PROTOCOL_VERSIONS}


class Served:
    """The protocol's server of this process."""

    def __init__(self) -> None:
        self._server = Server(
            "cardsync",
            version=__version__,
            title="cardsync",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda _: None,
            # In one release, all callers get the same lists.
            cache_hints={name: CacheHint(3_600_000, "public") for name in _LISTS},
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            on_list_prompts=_list_prompts,
            on_get_prompt=_get_prompt,
        )
        self._stamp = {
            types.SERVER_INFO_META_KEY: {
                "name": "cardsync", "title": "cardsync", "version": __version__,
            }
        }  # fmt: skip
        # The library's middleware makes spans, which the service does not collect.
        self._server.middleware.clear()
        # The middleware has already checked the host and the origin.
        self._manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def answer_call(self, scope: Scope, body: bytes, send: Send) -> bool:
        """Answer a message if it is an ordinary call of a tool, and return whether it was.

        The library would need as much time for the call as the operation itself. The library
        answers all other messages, especially invalid ones.
        """
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        if "application/json" not in headers.get("accept", "") or not headers.get(
            "content-type", ""
        ).startswith("application/json"):
            return False
        try:
            call = _calls.decode(body)
        except msgspec.MsgspecError:
            return False
        is_new = headers.get("mcp-protocol-version") not in _OF_2025
        if not _is_tool(call.params.name) or (is_new and not _is_plain(call, headers, scope)):
            return False
        blocks, is_error = await _answered(scope, call.params.name, call.params.arguments)
        told = _Told([_Text(block) for block in blocks], is_error)
        if is_new:
            told.result_type, told.meta = "complete", self._stamp
        answer = msgspec.json.encode(_Result(call.id, told))
        sized = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(answer)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": sized})
        await send({"type": "http.response.body", "body": answer, "more_body": False})
        return True

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(cast(Any, scope), cast(Any, receive), cast(Any, send))


@cache
def listed() -> list[types.Tool]:
    """Return all tools in the protocol's form."""
    return [
        *(
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.schema(),
                annotations=types.ToolAnnotations.model_validate(tool.hints),
            )
            for tool in tools.tools().values()
        ),
        types.Tool(
            name=code_mode.TOOL,
            title="Run a program",
            description=code_mode.description(),
            input_schema=code_mode.SCHEMA,
            annotations=types.ToolAnnotations.model_validate(code_mode.HINTS),
        ),
    ]


async def _list_tools(
    _: ServerRequestContext[object, object], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=listed())


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    if not _is_tool(params.name):
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")
    scope = context.request.scope  # type: ignore[union-attr]
    blocks, is_error = await _answered(scope, params.name, params.arguments)
    content: list[types.ContentBlock] = [
        types.TextContent(type="text", text=block) for block in blocks
    ]
    return types.CallToolResult(content=content, is_error=is_error)


def _is_plain(call: _Call, headers: dict[str, str], scope: Scope) -> bool:
    """Return whether the call passes the checks that the library makes for version 2026-07-28."""
    body = {"method": call.method, "params": {"name": call.params.name, "_meta": call.params.meta}}
    found = classify_inbound_request(body, headers=headers)
    names = [(name.decode("latin-1"), "") for name, _ in scope["headers"]]
    return isinstance(found, InboundModernRoute) and find_duplicated_routing_header(names) is None


def _is_tool(name: str) -> bool:
    return name == code_mode.TOOL or name in tools.tools()


async def _answered(
    scope: Scope, name: str, arguments: dict[str, object] | None
) -> tuple[list[str], bool]:
    """Call a tool. Return the blocks of its answer, and whether the answer is an error."""
    try:
        return await tools.call(scope, name, dict(arguments or {})), False
    except Refusal as refusal:
        return [str(refusal)], not refusal.is_pending
    except code_mode.Broken as broken:
        return [tool_answers.DATA, str(broken)], True


async def _list_prompts(
    _: ServerRequestContext[object, object], params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=prompt.name,
                title=prompt.title,
                description=prompt.title,
                arguments=[
                    types.PromptArgument(
                        name=name, description=told, required=name not in prompt.optional
                    )
                    for name, told in prompt.arguments.items()
                ],
            )
            for prompt in prompts.PROMPTS
        ]
    )


async def _get_prompt(
    _: ServerRequestContext[object, object], params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    prompt = prompts.BY_NAME.get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")
    try:
        text = prompts.filled(prompt, params.arguments or {})
    except KeyError as missing:
        raise MCPError(types.INVALID_PARAMS, f"{missing.args[0]}: is missing") from None
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.title, messages=[message])

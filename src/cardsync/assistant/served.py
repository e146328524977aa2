"""Answers the protocol's messages by the table: which tools and prompts there are, and calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
from litestar.types import Receive, Scope, Send
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from cardsync import __version__
from cardsync.assistant import answers, code_mode, prompts, tools
from cardsync.assistant.refusals import Refusal

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

INSTRUCTIONS: Final = (
    "A trading-card shop: its stock, prices, orders and lists. Read before you write; show what"
    " will change and ask. Prices change by plans_propose: dry_run first. A plan or write that"
    " waits has a confirm_url: give it to the seller, who decides; then read the outcome with"
    " waiting_read. Many calls are one program of the tool run. " + answers.DATA
)


class Served:
    """The protocol's server of this process."""

    def __init__(self) -> None:
        self._server = Server(
            "cardsync",
            version=__version__,
            title="cardsync",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda _: None,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            on_list_prompts=_list_prompts,
            on_get_prompt=_get_prompt,
        )
        # Each request must reach a fresh transport; host and origin were checked before.
        self._manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(
            cast(Any, scope), cast(Any, receive), cast(Any, send)
        )


def listed() -> list[types.Tool]:
    """Every tool as the protocol lists it."""
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
    _: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=listed())


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    if params.name != code_mode.TOOL and params.name not in tools.tools():
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")
    scope = context.request.scope  # type: ignore[union-attr]
    try:
        blocks = await tools.call(scope, params.name, dict(params.arguments or {}))
    except Refusal as refusal:
        return _told([str(refusal)], is_error=not refusal.is_pending)
    except code_mode.Broken as broken:
        return _told([answers.DATA, str(broken)], is_error=True)
    return _told(blocks)


def _told(blocks: list[str], *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [
        types.TextContent(type="text", text=block) for block in blocks
    ]
    return types.CallToolResult(content=content, is_error=is_error)


async def _list_prompts(
    _: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
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
    _: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
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

"""Describes how each well-known client connects to the shop, for the page of assistants."""

from __future__ import annotations

from typing import Final, NamedTuple


class Client(NamedTuple):
    """`steps` are sentences; `command` is a command or file to copy, in which `{origin}` is the
    address of the service and `{address}` that of its /mcp.
    """

    key: str
    name: str
    steps: tuple[str, ...]
    command: str = ""


CLIENTS: Final = (
    Client(
        "claude",
        "Claude",
        (
            "Open Settings, then Connectors, and choose Add custom connector.",
            "Paste the address below as the URL and choose Add, then Connect.",
            "Sign in here and approve what Claude may do.",
        ),
        "{address}",
    ),
    Client(
        "chatgpt",
        "ChatGPT",
        (
            "Open Settings, then Connectors, and turn on Developer mode under Advanced.",
            "Choose Create, and paste the address below as the server URL with OAuth.",
            "Sign in here and approve what ChatGPT may do.",
        ),
        "{address}",
    ),
    Client(
        "claude-code",
        "Claude Code",
        (
            "Run the command below in a terminal.",
            "Type /mcp in Claude Code, choose cardsync and Authenticate.",
        ),
        "claude mcp add --transport http cardsync {address}",
    ),
    Client(
        "vscode",
        "VS Code",
        (
            "Put the lines below into .vscode/mcp.json of a folder, or into your user settings.",
            "Choose Start above the entry, then sign in here and approve.",
        ),
        '{{"servers": {{"cardsync": {{"type": "http", "url": "{address}"}}}}}}',
    ),
    Client(
        "cursor",
        "Cursor",
        (
            "Put the lines below into ~/.cursor/mcp.json.",
            "Open Cursor's settings for MCP, choose Connect, then sign in here and approve.",
        ),
        '{{"mcpServers": {{"cardsync": {{"url": "{address}"}}}}}}',
    ),
    Client(
        "agent",
        "Any client on the agent's computer",
        (
            "The agent is installed on this computer. Make a key for the client under Keys.",
            "Put the lines below into the client's list of servers. It may do what the key may do.",
        ),
        '{{"mcpServers": {{"cardsync": {{"command": "cardsync-agent", "args": ["mcp", "--server",'
        ' "{origin}"], "env": {{"CARDSYNC_AGENT_KEY": "csk_…"}}}}}}}}',
    ),
)
BY_KEY: Final = {client.key: client for client in CLIENTS}

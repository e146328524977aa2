"""Describes how each well-known assistant connects to the shop, for the page of assistants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple


class Client(NamedTuple):
    """An assistant's program. `steps` are sentences. `command` is a command or a file to copy; in
    it `{origin}` is the service's address and `{address}` that of its /mcp. A `remote` program
    connects from the internet.
    """

    key: str
    name: str
    steps: tuple[str, ...]
    command: str = ""
    remote: bool = False

    def filled(self, origin: str, address: str) -> str:
        """Return the command or file with this service's addresses."""
        return self.command.replace("{origin}", origin).replace("{address}", address)


def _lines(file: Mapping[str, object]) -> str:
    return json.dumps(file, indent=2, ensure_ascii=False)


CLIENTS: Final = (
    Client(
        "claude",
        "Claude",
        (
            "Open Settings, then Connectors, and choose Add custom connector.",
            "Paste the address below as the URL and choose Add, then Connect.",
            "Sign in here and approve what Claude can do.",
        ),
        "{address}",
        remote=True,
    ),
    Client(
        "chatgpt",
        "ChatGPT",
        (
            "Open Settings, then Connectors, and turn on Developer mode under Advanced.",
            "Choose Create, and paste the address below as the server URL with OAuth.",
            "Sign in here and approve what ChatGPT can do.",
        ),
        "{address}",
        remote=True,
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
        _lines({"servers": {"cardsync": {"type": "http", "url": "{address}"}}}),
    ),
    Client(
        "cursor",
        "Cursor",
        (
            "Put the lines below into ~/.cursor/mcp.json.",
            "Open Cursor's settings for MCP, choose Connect, then sign in here and approve.",
        ),
        _lines({"mcpServers": {"cardsync": {"url": "{address}"}}}),
    ),
    Client(
        "agent",
        "Another app on the sync computer",
        (
            "The sync app is installed on that computer. Create a key for the app under Keys.",
            "Add the lines below to the app's MCP servers. The app can do what its key can do.",
        ),
        _lines(
            {
                "mcpServers": {
                    "cardsync": {
                        "command": "cardsync-agent",
                        "args": ["mcp", "--server", "{origin}"],
                        "env": {"CARDSYNC_AGENT_KEY": "csk_…"},
                    }
                }
            }
        ),
    ),
)
BY_KEY: Final = {client.key: client for client in CLIENTS}

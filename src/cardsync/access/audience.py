"""Names this service as the resource that tokens of grants are for (RFC 8707), and the address of
its description (RFC 9728), and the scopes of tokens: one reads, or writes, too. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cardsync.platform.settings import Settings


PATH: Final = "/mcp"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"


def audience(settings: Settings, host: str | None) -> str:
    """Return the resource for a caller who reached us as `host`."""
    return settings.origin_for(host) + PATH


def metadata_url(settings: Settings, host: str | None) -> str:
    """Return where that resource is described."""
    return settings.origin_for(host) + METADATA_PATH + PATH


READ: Final = "mcp:read"
WRITE: Final = "mcp:write"
SCOPES: Final = (READ, WRITE)

"""The scopes of a token of an assistant or a script: it reads, or writes, too."""

from typing import Final

READ: Final = "mcp:read"
WRITE: Final = "mcp:write"
SCOPES: Final = (READ, WRITE)

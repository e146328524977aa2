"""What a token of an assistant or a script may do: read, or write, too."""

from typing import Final

READ: Final = "mcp:read"
WRITE: Final = "mcp:write"
SCOPES: Final = (READ, WRITE)

"""Marks retired routes and fields by response headers, which name the date of retirement, the end
date and the successor (RFC 9745, RFC 8594). One table lists all of them; `docs/old-clients.md`
shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter

from cardsync.platform.kit.scope_values import ScopeValue

if TYPE_CHECKING:
    from litestar.types import Scope

USES: Final = Counter(
    "cardsync_retired_uses_total", "Answers to requests that used something retired", ["name"]
)
HEADERS: Final[dict[str, str]] = {
    "Deprecation": "Since when the part of the interface that this request used is retired (RFC 9745)",
    "Sunset": "Until when it works at least (RFC 8594)",
    "Link": "What takes its place, as successor-version, and where both are described, as deprecation",
}
_DESCRIBED: Final = "/openapi/openapi.json"


@dataclass(frozen=True)
class Retired:
    """A retired route, as `method` and `path`. If only a `part` of the route is retired, the
    route's function calls `used` when a request uses that part.
    """

    name: str
    method: str
    path: str
    part: str | None
    since: date
    sunset: date
    successor: str

    def headers(self) -> list[tuple[bytes, bytes]]:
        since = datetime.combine(self.since, time(tzinfo=UTC))
        sunset = f"{self.sunset:%a, %d %b %Y} 00:00:00 GMT"
        links = f'<{self.successor}>; rel="successor-version", <{_DESCRIBED}>; rel="deprecation"'
        return [
            (b"deprecation", f"@{int(since.timestamp())}".encode()),
            (b"sunset", sunset.encode()),
            (b"link", links.encode()),
        ]


_USED: Final = ScopeValue[Retired]("retired")
CSV_IN_BODY: Final = Retired(
    "csv_in_body",
    "POST",
    "/api/v1/sync",
    "the CSV itself as the body, where the account may use the key flow",
    since=date(2026, 11, 26),
    sunset=date(2027, 11, 26),
    successor="/api/v1/sync/upload-request",
)
RETIRED: Final = (CSV_IN_BODY,)


def whole_routes(table: tuple[Retired, ...]) -> dict[tuple[str, str], Retired]:
    return {(one.method, one.path): one for one in table if one.part is None}


_ROUTES: Final = whole_routes(RETIRED)


def used(scope: Scope, retired: Retired) -> None:
    """Record that this request uses a part of the API that is retired."""
    _USED.put(scope, retired)


def retired_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers that mark a retired route or part, and count its use."""
    route = (str(scope.get("method")), str(scope.get("path_template")))
    found = _USED.find(scope) or _ROUTES.get(route)
    if found is None:
        return []
    USES.labels(found.name).inc()
    return found.headers()

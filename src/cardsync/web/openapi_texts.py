"""The texts and headers in openapi.json that do not belong to a single route."""

from __future__ import annotations

from litestar.openapi.spec import Tag

from cardsync.access.tokens import COOKIE
from cardsync.web import retired

TAGS = [
    Tag("sync", "Heartbeat, decision, status, request and cycle log of the agent"),
    Tag("credits", "Skipping the cooldown after a sync"),
    Tag("inventory", "Inventory uploads and their reports"),
    Tag("orders", "Order-data uploads, feedback; orders and customers as they are read"),
    Tag("sales", "Monthly sales reports, and which are missing"),
    Tag("lots", "What copies of cards cost, the profit of what was sold, and fees"),
    Tag("pulls", "Pull sessions, and the marks of the orders in them"),
    Tag("shelves", "Boxes and slots, and the cards in them"),
    Tag("contributions", "Cards that members have in hand and no marketplace lists yet"),
    Tag("quick-add", "What a seller wants to list: drafts, published, sent, and how it ended"),
    Tag("buying", "Collections that customers bring, buy rules, offers and store credit"),
    Tag("discovery", "Stock of the consenting sellers of the network, by card"),
    Tag("account", "The settings of an account"),
    Tag("agent work", "Work that waits for the agent"),
    Tag("today", "What waits for somebody, and the shop's figures of the day"),
    Tag("notices", "What members get by mail, and webhooks"),
    Tag("activity", "What was done, by whom, and undoing it"),
    Tag("members", "Signing in and out, and accepting an invitation"),
    Tag("assistants", "The assistants that may reach a shop"),
    Tag("cards", "Cards as they are searched and read"),
    Tag("lists", "Lists of cards, and the cards on them"),
    Tag("pricing", "The price-updates export"),
    Tag("print", "Label sheets, and the places of labels on them"),
    Tag("releases", "Updates of the agent and the desktop wrapper, and their downloads"),
    Tag("workflows", "What agents know of a marketplace's pages, as signed data"),
    Tag("operator", "The sellers and the state of the installation, for its operators"),
    Tag("objects", "The embedded object store"),
    Tag("health", "For operators"),
]
DESCRIPTION = (
    "Seller inventory sync: inventory CSV up, price changes down.\n\n"
    "Refusals are `{error, code}`, except the few that have a `status` instead. An unknown address answers as `components/responses/UnknownRoute`, a method that an address does "
    "not take as `components/responses/MethodNotAllowed`. HEAD answers wherever GET does, without the body. A body that is JSON alone "
    "is in UTF-8, and may be sent as `application/gzip`, compressed. A public demo refuses what no night undoes: 403 `public_demo`. A query parameter that takes several "
    "values is read as `x=1&x=2` and as `x[]=1&x[]=2`. Unknown query parameters are ignored, and so are unknown body fields, except where a body's schema has none besides its own."
)
SESSION = (
    f"A member who signed in (POST /api/session). The cookie is __Host-{COOKIE} where the service is reached by https. Methods other than "
    "GET and HEAD need the session's CSRF token in X-CSRF-Token and no other site's Origin."
)
A_TOKENS_USE = (
    "A token of an assistant or a script, cst_…, with the scope that the route names: mcp:read to read, mcp:write to write. "
    "Assistants get theirs from the authorization server that /.well-known/oauth-authorization-server describes; without buyer data, answers leave out who bought. "
    "A route that names no token refuses them."
)
TEXT = {"type": "string"}
FILES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
LIMITS = {
    name: {"$ref": f"#/components/headers/{name}"} for name in ("RateLimit-Policy", "RateLimit")
}
HEADERS = {
    "X-Request-Id": {
        "description": "Names this request in the log; quote it to support",
        "schema": TEXT,
    },
    "WWW-Authenticate": {
        "description": 'Bearer realm="cardsync", with error="invalid_token" when credentials were sent, and with error="insufficient_scope", the scope that is missing (RFC 6750) and where the resource is described (RFC 9728)',
        "schema": TEXT,
    },
    "Retry-After": {
        "description": "Seconds to wait before trying again",
        "schema": {"type": "integer", "minimum": 0},
    },
    "RateLimit-Policy": {
        "description": 'The limits that bind this request: requests `q` in `w` seconds, as `"general";q=300;w=60`, one or two of them',
        "schema": TEXT,
    },
    "RateLimit": {
        "description": "Where the caller stands with each: requests `r` left at once, `t` seconds until all are there again, or one is "
        'when none is left, as `"general";r=87;t=3`',
        "schema": TEXT,
    },
    "Allow": {"description": "The methods that this address takes", "schema": TEXT},
    "Vary": {"description": "Accept: a page in HTML for browsers, JSON else", "schema": TEXT},
    **{name: {"description": said, "schema": TEXT} for name, said in retired.HEADERS.items()},
}

"""One request of each route of openapi.json, with the least that its operation needs to see who
asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from cardsync.web.openapi import opened

DOCUMENT = opened(json.loads((Path(__file__).parents[1] / "openapi.json").read_text()))
ROUTES = {
    f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods
}
# A body without which the framework refuses a request before the operation has seen who asks.
BODIES = {
    "POST /api/v1/tasks": {"kind": "refresh_orders"},
    "POST /api/operator/catalogs": {"games": ["magic"]},
    "PATCH /api/operator/catalogs": {"tell_when_old": True},
    "POST /api/operator/catalogs/back": {"game": "magic"},
    "POST /api/members/invitations": {"email": "new@example.invalid", "role": "staff"},
    "PATCH /api/members/{member_id}": {"role": "staff"},
    "PATCH /api/members/me": {"name": "Sam"},
    "POST /api/keys": {"name": "Laptop"},
    "PATCH /api/keys/{key_id}": {"own_script": False},
    "POST /api/webhooks": {"url": "https://localhost/hook"},
    "POST /api/passkeys": {"name": "Laptop", "credential": {}},
    "POST /api/session/passkey": {"credential": {}},
    # Not the address of the one who asks, so that nothing ends by the way.
    "POST /api/account/deletion": {"confirm": "nobody"},
    "PUT /api/card_columns": {"columns": ["price"]},
    "PUT /api/card_columns/shop": {"columns": ["price"]},
    "POST /api/cards/{card_id}/match": {"product_id": 1},
    "POST /api/saved_searches": {"name": "Dear", "query": "price>5"},
    "POST /api/lists": {"name": "Binder"},
    "POST /api/buying/lots": {"lots": [{"marketplace_id": 1, "quantity": 1}]},
    "POST /api/buying/lots/file": {"csv": "TCGplayer Id,Quantity\n1,1\n"},
    "POST /api/buying/payments": {"csv": "Order,Fees\nA-1,1\n"},
    "POST /api/pricing/reviews/accept": {
        "reviews": [{"marketplace_id": 1, "revision": "2026-11-21T08:00:00.000000Z"}]
    },
    "POST /api/pricing/reviews/dismiss": {
        "reviews": [{"marketplace_id": 1, "revision": "2026-11-21T08:00:00.000000Z"}]
    },
    "POST /api/pricing/reviews/snooze": {
        "reviews": [{"marketplace_id": 1, "revision": "2026-11-21T08:00:00.000000Z"}]
    },
    "POST /api/waiting/{kind}/{waiting_id}": {
        "answer": "approve",
        "revision": "2026-11-21T08:00:00.000000Z",
    },
    "POST /api/recommendations/{recommendation_id}/accept": {
        "revision": "2026-11-21T08:00:00.000000Z"
    },
    "POST /api/recommendations/{recommendation_id}/dismiss": {
        "revision": "2026-11-21T08:00:00.000000Z"
    },
    "POST /api/recommendations/{recommendation_id}/snooze": {
        "revision": "2026-11-21T08:00:00.000000Z"
    },
    "POST /api/recommendations/shown": {"observations": []},
    "PATCH /api/lists/{list_id}": {"name": "Folder"},
    "POST /api/discovery/availability": {"name": "Mew"},
    "POST /api/discovery/basket": {"cards": [{"name": "Mew"}]},
    "POST /api/pull_links": {"session_id": 1},
    "POST /api/orders/mark_shipped": {"order_ids": [1]},
    "POST /api/orders/{order_id}/missing/{item_id}": {"outcome": "found"},
    "POST /api/buying/offers": {"lines": [{"product_id": 1, "condition": "NM", "copies": 1}]},
    "PATCH /api/buying/offers/{offer_id}": {"revision": 1},
    "POST /api/buying/offers/{offer_id}/offer": {"revision": 1},
    "POST /api/buying/offers/{offer_id}/accept": {"revision": 1, "way": "cash"},
    "POST /api/buying/offers/{offer_id}/decline": {"revision": 1},
    "POST /api/buying/offers/{offer_id}/receive": {"revision": 1},
    "POST /api/buying/offers/{offer_id}/pay": {"revision": 1},
    "POST /api/buying/offers/{offer_id}/stock": {"revision": 1},
    "POST /api/buying/customers": {"name": "Mia"},
    "PATCH /api/buying/customers/{customer_id}": {"name": "Mia"},
    "POST /api/buying/customers/{customer_id}/credit": {
        "amount": "1.00",
        "key": "k",
        "reason": "gift",
    },
    "PATCH /api/buying/buylist": {"is_open": True},
    "POST /api/buying/collections/{collection_id}/choices": {"choices": [{"row": 1}]},
    "PUT /api/buying/collections/{collection_id}/columns": {"columns": {"name": "Name"}},
    "POST /api/quick_add/publish": {"ids": [1]},
    "POST /api/quick_add/{entry_id}/settle": {"listed": True},
    "POST /api/pricing/backtest": {"rules": [], "from": "2026-10-01", "to": "2026-10-31"},
    "POST /api/pricing/preview/draft": {"rule": {}},
    "POST /api/pricing/preview/sale": {"sale": {}},
    "POST /api/pricing/test": {"rule": {}},
    "POST /api/pricing/rules/reorder": {"ids": []},
    "POST /api/counts": {"box": 1},
    "POST /api/counts/{count_id}/seen": {"cards": [{"card_id": 1, "slot": 1, "quantity": 1}]},
}


def address_of(route: str, ids: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """The method and the path of a request of that route."""
    method, path = route.split(" ")
    path = path.replace("{preset}", "premium").replace("waiting/{kind}", "waiting/price")
    path = path.replace("buying/rules/{rule_id}", "buying/rules/{buy_rule_id}")
    # Nobody's, so that no caller ends its own session or key by the way.
    path = re.sub(r"\{(member|member_session|key|passkey|assistant)_id\}", "999999999", path)
    return method, re.sub(r"\{(\w+)\}", lambda name: str((ids or {}).get(name[1], 1)), path)


async def answer_of(
    send: Callable[..., Awaitable[Any]], route: str, ids: Mapping[str, Any] | None = None
) -> Any:
    """The answer to a request of that route; `ids` are those of its address that are not 1."""
    method, path = address_of(route, ids)
    takes_json = "requestBody" in DOCUMENT["paths"][route.split(" ")[1]][method.lower()]
    options = {"json": BODIES.get(route, {})} if takes_json else {}
    headers = {"X-Idempotency-Key": "once"} if path.endswith("skip_wait") else {}
    return await send(method, path, headers=headers, **options)


async def asked(send: Callable[..., Awaitable[Any]], route: str) -> tuple[int, str]:
    """The status and the code of the answer to a request of that route."""
    answer = await answer_of(send, route)
    if "json" not in answer.headers.get("content-type", "") or answer.status_code < 400:
        return answer.status_code, ""
    return answer.status_code, answer.json().get("code", "")

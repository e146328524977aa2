"""The pages of the dashboard: every GET route of its door is in this one table, and a new page is
one line more.

A line says what an address has in place of its ids, which JSON reads the page shows, and which
figures of these are on it. The tests of all pages go over this table: over HTTP in
`features/dashboard/test_every_page.py`, and in a browser in `system/test_pages_in_browser.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import escape

from cardsync.dashboard.formats import Reader
from cardsync.dashboard.page_list import first_run, pages
from cardsync.dashboard.pages.sync import phase_words

# The answers of a page's JSON reads, in their order, and the reader: the texts that it must show.
Figures = Callable[[list[Any], Reader], Iterable[str]]
Kind = Literal["page", "part", "file", "redirect", "stranger", "development"]


@dataclass(frozen=True)
class Page:
    """A GET route. `query` is what it is asked with; staff is refused where owners alone have it.

    A page of `kind` page has a heading; a file is downloaded; a redirect leads on; a stranger's
    page takes no session; a page of development is not there in a shop. A part belongs to another
    page, or is there only while something is under way: the tests of that page ask for it.
    """

    route: str
    reads: tuple[str, ...] = ()
    figures: Figures | None = None
    owner_only: bool = False
    query: str = ""
    kind: Kind = "page"

    def address(self, ids: Mapping[str, int | str]) -> str:
        return filled(self.route, ids) + (f"?{self.query}" if self.query else "")


def filled(path: str, ids: Mapping[str, int | str]) -> str:
    """Return a path with ids in place of `{card_id:int}` or `{card_id}`."""
    for name, number in ids.items():
        for kind in (":int", ":str", ""):
            path = path.replace(f"{{{name}{kind}}}", str(number))
    return path


def _cards(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    yield f"{reader.number(found['total'])} card"
    for card in found["cards"]:
        # The address may also name the place in the search.
        yield f'href="/cards/{card["id"]}'
        yield from _money(reader, card["price"], card["target_price"])


def _card(answers: list[Any], reader: Reader) -> Iterable[str]:
    card, why = answers
    yield from _money(reader, card["price"], card["target_price"], card["market_price"])
    yield reader.number(card["quantity"])
    for place in card["locations"]:
        yield place["code"]
    for entry in card["lists"]:
        yield f'href="/lists/{entry["id"]}"'
    for step in why["steps"]:
        yield str(escape(reader.in_cents(step["summary"], why["target_price"])))


def _orders(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    yield f"{reader.number(found['total'])} order"
    for order in found["orders"]:
        yield f'href="/orders/{order["id"]}"'
        yield from _money(reader, order["total_amt"])


def _order(answers: list[Any], reader: Reader) -> Iterable[str]:
    [order] = answers
    yield from _money(reader, order["total_amt"], order["refund_amt"] or None)
    for item in order["items"]:
        yield from _money(reader, item["unit_price"], item["card_price"], item["line_total"])
        for place in item["locations"]:
            yield place["code"]


def _customers(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    yield f"{reader.number(found['total'])} customer"
    for customer in found["customers"]:
        yield from _money(reader, customer["lifetime_total"])


def _collections(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["collections"]:
        yield f'href="/buying/collections/{one["id"]}"'
        yield from (reader.number(one[count]) for count in ("copies", "waiting"))


def _collection(answers: list[Any], reader: Reader) -> Iterable[str]:
    # Its amount is asked for: a row of it waits for a choice.
    [found] = answers
    yield str(found["copies"])
    yield f'href="/buying/collections/{found["id"]}?value=true"'


def _buy_rules(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for rule in found["rules"]:
        yield f'href="/buying/rules/{rule["id"]}"'


def _lists(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["lists"]:
        yield f'href="/lists/{one["id"]}"'
        for count in ("card_count", "active_count", "gone_count"):
            yield reader.number(one[count])


def _list(answers: list[Any], reader: Reader) -> Iterable[str]:
    one, cards = answers
    yield reader.number(one["card_count"])
    yield f"{reader.number(cards['total'])} card"
    for card in cards["cards"]:
        yield f'href="/cards/{card["id"]}"'


def _activity(answers: list[Any], reader: Reader) -> Iterable[str]:
    [feed] = answers
    yield reader.number(feed["total"])
    for entry in feed["activity"]:
        yield f'id="entry-{entry["id"]}"'
        yield entry["action"]
        yield f'datetime="{entry["created_at"]}"'


def _today(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [status] = answers
    yield phase_words(status["phase"])


def _people(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [found] = answers
    for member in found["members"]:
        yield member["email"]
        yield f"/settings/people/{member['id']}/"


def _keys(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [found] = answers
    for key in found["keys"]:
        yield "revoked" if key["revoked_at"] else f"/settings/keys/{key['id']}/revoke"


def _notices(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["kinds"]:
        yield str(escape(one["label"]))
        yield f'name="way:{one["kind"]}"'


def _webhooks(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["webhooks"]:
        yield f'href="/settings/webhooks/{one["id"]}"'
        yield str(escape(one["url"]))


def _webhook(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["deliveries"]:
        yield one["message_id"]
        yield reader.number(one["tries"])


def _offers(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for offer in found["offers"]:
        yield f'href="/buying/offers/{offer["id"]}"'
        yield from _money(reader, offer["totals"]["cash"])


def _offer(answers: list[Any], reader: Reader) -> Iterable[str]:
    [offer] = answers
    yield from _money(reader, offer["totals"]["cash"])
    for line in offer["lines"]:
        yield str(escape(line["product_name"]))


def _buying_customers(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for customer in found["customers"]:
        yield f'href="/buying/customers/{customer["id"]}"'
        yield from _money(reader, customer["credit"])


def _store_credit(answers: list[Any], reader: Reader) -> Iterable[str]:
    [sheet] = answers
    for entry in sheet["entries"]:
        yield from _money(reader, entry["amount"], entry["balance_after"])


def _network(answers: list[Any], reader: Reader) -> Iterable[str]:
    [network] = answers
    yield reader.number(network["in_stock"])
    yield reader.number(network["shared"])
    yield "see your stock" if network["seen"] else "Your stock is hidden"
    for card in network["shown"]:
        yield from _money(reader, card["price"])


# The shop of the pages' tests has an owner who is an operator, too (`browsers.operates`).
def _sellers(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    yield f"{reader.number(found['total'])} seller"
    for seller in found["sellers"]:
        yield f'href="/operator/sellers/{seller["id"]}"'
        yield str(escape(seller["email"]))


def _installation(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for line in found["lines"]:
        yield str(escape(line["label"]))
        yield reader.number(line["products"])
    for queue in found["queues"]:
        yield queue["stream"]


def _catalogs(answers: list[Any], reader: Reader) -> Iterable[str]:
    [found] = answers
    for one in found["listed"]:
        yield reader.number(one["listings"])
        yield str(escape(reader.game(one["game"])))
    for one in found["catalogs"]:
        if one["source"]:
            yield str(escape(one["source_label"]))


def _shop(answers: list[Any], _reader: Reader) -> Iterable[str]:
    [account] = answers
    yield account["time_zone"]
    yield f'value="{account["tracking_threshold"]}"'


def _sync_result(answers: list[Any], reader: Reader) -> Iterable[str]:
    found = answers[0]["result"]
    yield from _money(reader, found["raised_value"], found["lowered_value"], found["listed_now"])
    yield from _money(reader, found["captured"]["value"])


def _money(reader: Reader, *amounts: str | None) -> Iterable[str]:
    for amount in amounts:
        if amount is not None:
            yield reader.money(amount)


PAGES = [
    Page("/", kind="redirect"),
    Page("/today", ("/api/v1/status",), _today),
    Page("/cards", ("/api/cards",), _cards),
    Page("/cards/{card_id:int}", ("/api/cards/{card_id}", "/api/v1/pricing/explain/1"), _card),
    Page("/cards/export.csv", kind="file"),
    Page("/find", query="search=lotus"),
    Page("/orders", ("/api/orders?state=to_ship",), _orders),
    Page("/orders/ship"),
    Page("/orders/{order_id:int}", ("/api/orders/{order_id}",), _order),
    Page("/customers", ("/api/customers",), _customers),
    Page("/lists", ("/api/lists",), _lists),
    Page(
        "/lists/{list_id:int}",
        ("/api/lists/{list_id}", "/api/cards?search=list:every-page&status=all"),
        _list,
    ),
    Page("/lists/{list_id:int}/add", ("/api/cards?search=lotus",), _cards, query="search=lotus"),
    Page("/activity", ("/api/v1/agent/activity",), _activity),
    Page("/settings", kind="redirect"),
    Page("/settings/shop", ("/api/account",), _shop, owner_only=True),
    Page("/settings/sync", owner_only=True),
    Page("/settings/people", ("/api/members",), _people, owner_only=True),
    Page("/settings/keys", ("/api/keys",), _keys, owner_only=True),
    Page("/settings/assistants", owner_only=True),
    Page("/settings/assistants/connect/{client:str}", kind="part"),
    Page("/settings/data", owner_only=True),
    Page("/settings/notices", ("/api/notices/choices",), _notices),
    Page("/settings/webhooks", ("/api/webhooks",), _webhooks, owner_only=True),
    Page(
        "/settings/webhooks/{webhook_id:int}",
        ("/api/webhooks/{webhook_id}/deliveries",),
        _webhook,
        owner_only=True,
    ),
    Page("/settings/appearance"),
    Page("/settings/sign-in"),
    Page("/account"),
    Page("/account/credits"),
    Page("/cards/{card_id:int}/match"),
    Page("/orders/export.csv", kind="file"),
    Page("/customers/export.csv", kind="file"),
    Page("/lists/export.csv", kind="file"),
    Page("/activity/export.csv", kind="file"),
    Page("/pricing/runs/export.csv", kind="file"),
    Page("/find/pages", kind="part"),
    Page("/cards/more", kind="part"),
    Page("/cards/count", kind="part"),
    Page("/cards/order", kind="part"),
    Page("/cards/peek", kind="part"),
    Page("/orders/peek", kind="part"),
    Page("/pricing", owner_only=False, kind="redirect"),
    Page("/pricing/rules/new", owner_only=True),
    Page("/pricing/rules/{rule_id:int}", owner_only=True),
    Page("/pricing/tests", owner_only=True),
    Page("/pricing/presets", owner_only=True),
    Page("/pricing/sales"),
    Page("/pricing/sales/new", owner_only=True),
    Page("/pricing/sales/{sale_id:int}", kind="part"),
    Page("/pricing/settings", owner_only=True),
    Page("/pricing/reviews", ("/api/pricing/reviews",)),
    Page("/pricing/pins"),
    Page("/pricing/runs", ("/api/pricing/runs",)),
    Page("/pricing/runs/{run_id:int}"),
    Page("/pricing/rollback", owner_only=True),
    Page("/pricing/rollback/{rollback_id:int}", kind="part"),
    Page("/pricing/backtest", owner_only=True),
    Page("/customers/{key:str}"),
    Page("/recommendations"),
    Page("/recommendations/accept", kind="redirect"),
    Page("/recommendations/outcomes", owner_only=True),
    Page("/returns"),
    Page("/sales", owner_only=True),
    Page("/profit", owner_only=True),
    Page("/shelves"),
    Page("/shelves/box", kind="part"),
    Page("/shelves/put"),
    Page("/shelves/{box:str}"),
    Page("/shelves/{box:str}/{slot:str}", kind="redirect"),
    Page("/counts"),
    Page("/counts/{count_id:int}"),
    Page("/operator", ("/api/operator/sellers",), _sellers, owner_only=True),
    Page("/operator/sellers/{seller_id:int}", owner_only=True),
    Page("/operator/installation", ("/api/operator/installation",), _installation, owner_only=True),
    Page("/operator/catalogs", ("/api/operator/catalogs",), _catalogs, owner_only=True),
    Page("/print"),
    Page("/print/labels"),
    Page("/print/restock"),
    Page("/print/orders/{order_id:int}"),
    Page("/print/slips"),
    Page("/print/pulls/{session_id:int}"),
    Page("/print/sheets/{key:str}", kind="part"),
    Page("/pulls"),
    Page("/pulls/{session_id:int}"),
    Page("/pulls/{session_id:int}/changes", kind="part"),
    Page("/network", ("/api/network",), _network, owner_only=True),
    Page("/sync"),
    Page("/sync/state", kind="part"),
    Page("/sync/result", ("/api/sync_result",), _sync_result, owner_only=True),
    Page("/sync/prices", owner_only=True),
    Page("/sync/prices/count", kind="part", owner_only=True),
    Page("/sync/prices.csv", kind="file"),
    Page("/sync/cycles", ("/api/v1/sync/cycles",), owner_only=True),
    Page("/sync/cycles/{cycle_id:int}", owner_only=True),
    Page("/sync/uploads", ("/api/v1/uploads",), owner_only=True),
    Page("/sync/uploads/{upload_id:int}", owner_only=True),
    Page("/sync/uploads/{upload_id:int}/rejected.csv", kind="file"),
    Page("/buying", ("/api/buying/collections",), _collections),
    Page(
        "/buying/collections/{collection_id:int}",
        ("/api/buying/collections/{collection_id}",),
        _collection,
    ),
    Page("/buying/rules", ("/api/buying/rules",), _buy_rules, owner_only=True),
    Page("/buying/rules/new", owner_only=True),
    Page("/buying/rules/{rule_id:int}", kind="part"),
    Page("/buying/offers", ("/api/buying/offers",), _offers),
    Page("/buying/offers/new"),
    Page("/buying/offers/{offer_id:int}", ("/api/buying/offers/{offer_id}",), _offer),
    Page("/print/offers/{offer_id:int}", ("/api/buying/offers/{offer_id}",), _offer),
    Page("/buying/customers", ("/api/buying/customers",), _buying_customers),
    Page(
        "/buying/customers/{customer_id:int}",
        ("/api/buying/customers/{customer_id}/credit",),
        _store_credit,
    ),
    Page("/buying/buylist", owner_only=True),
    Page("/add-cards"),
    Page("/add-cards/recover"),
    Page("/set-up", kind="stranger"),
    Page("/set-up/restore", kind="stranger"),
    Page("/set-up/presets", owner_only=True),
    Page("/set-up/agent", owner_only=True),
    Page("/set-up/prices", owner_only=True),
    Page("/set-up/uploads/{upload_id:int}", owner_only=True),
    Page("/styleguide", kind="development"),
]


def routes_of_the_door() -> set[str]:
    """Return the path of every GET route of the dashboard, as its handler has it."""
    routes = itertools.chain(pages.routes, first_run.routes)
    return {route.path for route in routes if "GET" in route.methods}


def built(*kinds: Kind) -> list[Page]:
    """Return the lines whose route the door has."""
    there = routes_of_the_door()
    return [page for page in PAGES if page.route in there and page.kind in (kinds or ("page",))]

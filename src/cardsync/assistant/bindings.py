"""Defines the table of operations that assistants can call. Each binding names an operation of the
service's own API; assistants reach no other operation.

The shapes of arguments and answers are those of the API (`derive.py` reads them from its
description), so nothing is described twice. A call is a request to this process's own application
(`own_api.py`), so the rights, limits, checks and log are those of the API's route.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, get_args

from cardsync.platform.value_types import JsonMapping

Risk = Literal["none", "lists", "prices", "reviews", "sync"]
"""The kind of action in the owner's permissions; `none` for a read."""
RISKS: Final[tuple[Risk, ...]] = get_args(Risk)
READ: Final = "mcp:read"
WRITE: Final = "mcp:write"


class Binding(NamedTuple):
    """An operation that an assistant can call. `tool` is the protocol's tool for it; `title`
    describes it.
    """

    name: str
    method: str
    path: str
    scope: str
    risk: Risk
    tool: str
    title: str

    @property
    def function(self) -> str:
        """The binding's function in a program of the code mode: lists.addCards is
        lists_add_cards.
        """
        return "".join(
            f"_{letter.lower()}" if letter.isupper() else letter for letter in self.name
        ).replace(".", "_")

    @property
    def writes(self) -> bool:
        return self.scope == WRITE


def _read(name: str, path: str, tool: str, title: str, method: str = "GET") -> Binding:
    return Binding(name, method, path, READ, "none", tool, title)


def _write(name: str, method: str, path: str, risk: Risk, tool: str, title: str) -> Binding:
    return Binding(name, method, path, WRITE, risk, tool, title)


TABLE: Final = (
    _read("lists.list", "/api/lists", "lists_list", "All lists with their counts"),
    _write("lists.create", "POST", "/api/lists", "lists", "lists_create", "A new, empty list"),
    _write("lists.rename", "PATCH", "/api/lists/{list_id}", "lists", "lists_rename", "Another name for a list"),
    _write("lists.delete", "DELETE", "/api/lists/{list_id}", "lists", "lists_delete", "Delete a list; its cards stay in stock"),
    _write("lists.addCards", "POST", "/api/lists/{list_id}/cards", "lists", "lists_add_cards", "Put selected cards on a list"),
    _write("lists.removeCards", "DELETE", "/api/lists/{list_id}/cards", "lists", "lists_remove_cards", "Take selected cards off a list"),
    _read("inventory.listCards", "/api/cards", "inventory_list_cards", "Search the stock, with prices, lists and shelf places"),
    _read("inventory.readCard", "/api/cards/{card_id}", "cards_read", "One card with its price history"),
    _read("inventory.soldIn", "/api/cards/{card_id}/orders", "cards_read", "The orders that a card was sold in"),
    _read("pricing.explainCard", "/api/v1/pricing/explain/{marketplace_id}", "pricing_explain_card", "Why a card has its price, step by step"),
    _read("pricing.preview", "/api/pricing/preview", "rules_read", "What other rules would ask; nothing is written", "POST"),
    _read("pricing.previewDraft", "/api/pricing/preview/draft", "rules_read", "What one unsaved rule would ask", "POST"),
    _read("pricing.previewSale", "/api/pricing/preview/sale", "rules_read", "What one unsaved promotion would do", "POST"),
    _read("rules.list", "/api/pricing/rules", "rules_read", "The pricing rules in their order"),
    _read("rules.read", "/api/pricing/rules/{rule_id}", "rules_read", "One pricing rule"),
    _read("rules.analyse", "/api/pricing/rules/analysis", "rules_read", "Rules that overlap, never apply, or cannot be read"),
    _read("rules.sales", "/api/pricing/sales", "rules_read", "The sales, past and planned"),
    _read("rules.settings", "/api/pricing/settings", "rules_read", "The settings of pricing"),
    _read("rules.presets", "/api/pricing/presets", "rules_read", "What each preset would ask of the stock"),
    _read("buying.collections", "/api/buying/collections", "sales_read", "The collections that customers brought"),
    _read("buying.readCollection", "/api/buying/collections/{collection_id}", "sales_read", "One collection: format, progress, what is unsure"),
    _read("buying.value", "/api/buying/collections/{collection_id}/value", "sales_read", "What a collection brings by the buy rules, line by line"),
    _read("buying.rules", "/api/buying/rules", "sales_read", "The buy rules in their order"),
    _read("orders.list", "/api/orders", "orders_read", "Orders, newest first, with their items"),
    _read("orders.read", "/api/orders/{order_id}", "orders_read", "One order with all items and their shelf places"),
    _read("customers.list", "/api/customers", "orders_read", "Customers by what their orders add up to"),
    _read("customers.read", "/api/customers/{key}", "orders_read", "One customer's orders and refunds"),
    _read("sales.summary", "/api/sales/summary", "sales_read", "Orders, gross, refunds, fees and net by day, week, month or game"),
    _read("profit.read", "/api/buying/profit", "sales_read", "Profit by day, week, month, game, pricing rule or buy rule, after fees, postage and cost"),
    _read("profit.without_cost", "/api/buying/profit/without_cost", "sales_read", "Sold cards of whose copies some have no cost"),
    _read("profit.fees", "/api/buying/fees", "sales_read", "Fees that were charged beside those that the schedule expects"),
    _read("profit.lots", "/api/buying/lots", "sales_read", "What copies of cards cost, and how many are left"),
    _read("sales.cards", "/api/sales/cards", "sales_read", "The cards that sold most"),
    _read("sales.listedValue", "/api/listed_value", "sales_read", "What the stock is listed for, day by day"),
    _read("sync.result", "/api/sync_result", "sales_read", "What a sync brought: prices raised and lowered by rule, what was not sent, and what raised prices captured this month"),
    _read("sales.movers", "/api/movers", "sales_read", "The cards whose prices moved most"),
    _read("today.read", "/api/today", "shop_read", "What needs somebody today, and the day's figures"),
    _read("sync.status", "/api/v1/status", "shop_read", "Whether a sync runs, and when the last one ended"),
    _read("sync.cycles", "/api/v1/sync/cycles", "shop_read", "The last syncs and their outcomes"),
    _read("sync.tasks", "/api/v1/tasks", "shop_read", "Work that waits for the agent"),
    _read("uploads.list", "/api/v1/uploads", "shop_read", "The last uploads"),
    _read("uploads.read", "/api/v1/uploads/{upload_id}", "shop_read", "One upload's report: rows taken and rejected"),
    _read("account.read", "/api/account", "shop_read", "The settings of the account"),
    _read("activity.list", "/api/v1/agent/activity", "shop_read", "What was changed, by whom, and how it ended"),
    _write("sync.request", "POST", "/api/v1/sync/request", "sync", "sync_request", "Ask for a sync"),
    _read("recommendations.list", "/api/recommendations", "waiting_read", "Price recommendations with their evidence"),
    _read("recommendations.outcomes", "/api/recommendations/outcomes", "waiting_read", "What became of decided recommendations"),
    _read("reviews.list", "/api/pricing/reviews", "waiting_read", "Prices that the rules ask and that wait for a decision"),
    _read("waiting.list", "/api/waiting", "waiting_read", "All that waits: uploads, runs, plans, prices, suggestions"),
    _read("plans.list", "/api/v1/agent/plans", "waiting_read", "Plans: waiting, applied, declined, expired"),
    _read("plans.read", "/api/v1/agent/plans/{plan_id}", "waiting_read", "One plan and its outcome"),
    _write("plans.propose", "POST", "/api/v1/agent/plans", "prices", "plans_propose", "Change rules, pins and lists, all or nothing"),
    _write("recommendations.accept", "POST", "/api/recommendations/{recommendation_id}/accept", "reviews", "recommendations_decide", "Take the proposed price"),
    _write("recommendations.dismiss", "POST", "/api/recommendations/{recommendation_id}/dismiss", "reviews", "recommendations_decide", "Leave the price as it is"),
    _write("recommendations.snooze", "POST", "/api/recommendations/{recommendation_id}/snooze", "reviews", "recommendations_decide", "Decide later"),
    _write("reviews.accept", "POST", "/api/pricing/reviews/accept", "reviews", "recommendations_decide", "Take prices that wait"),
    _write("reviews.dismiss", "POST", "/api/pricing/reviews/dismiss", "reviews", "recommendations_decide", "Refuse prices that wait"),
    _write("reviews.snooze", "POST", "/api/pricing/reviews/snooze", "reviews", "recommendations_decide", "Decide later"),
    _write("waiting.decide", "POST", "/api/waiting/{kind}/{waiting_id}", "reviews", "recommendations_decide", "Approve, decline or snooze what waits"),
    _read("discovery.findAvailability", "/api/discovery/availability", "discovery_find_availability", "Which other sellers have a card", "POST"),
    _read("market.holds", "/api/market_depth/holds", "cards_read", "Cards whose market is thin, with price options"),
    _read("market.clearingCoverage", "/api/analytics/clearing_coverage", "cards_read", "Observed sales of a card"),
    _read("offers.list", "/api/buying/offers", "sales_read", "Offers to customers who sell cards, newest first"),
    _read("offers.read", "/api/buying/offers/{offer_id}", "sales_read", "One offer with its cards and why each brings what it does"),
    _read("offers.customers", "/api/buying/customers", "sales_read", "Customers who sell to the shop, with their store credit"),
    _read("offers.credit", "/api/buying/customers/{customer_id}/credit", "sales_read", "The entries of a customer's store credit"),
    _write("offers.propose", "POST", "/api/buying/offers", "lists", "plans_propose", "Draft an offer; only the owner offers and pays it"),
    _read("http.get", "/api/{path}", "http_get", "Any other read of the interface, by its path"),
)  # fmt: skip
BY_NAME: Final[Mapping[str, Binding]] = {binding.name: binding for binding in TABLE}
FALLBACK: Final = BY_NAME["http.get"]


class Argument(NamedTuple):
    """An argument of a binding. `place` and `wire` are its place and its name in the request."""

    name: str
    place: Literal["path", "query", "body", "payload"]
    wire: str
    required: bool
    schema: JsonMapping


def shown(argument: Argument) -> str:
    """Return the argument's name, with a question mark if it is optional."""
    return argument.name if argument.required else f"{argument.name}?"


class Shapes(NamedTuple):
    """The arguments of a binding in their order, the name of its answer in openapi.json, and the
    description of its route.
    """

    arguments: tuple[Argument, ...]
    answer: str
    about: str


@cache
def shapes() -> Mapping[str, Shapes]:
    """Return the shapes of all bindings by name, as `make openapi` wrote them to shapes.json."""
    kept = json.loads(files(__package__).joinpath("shapes.json").read_text("utf-8"))
    return {
        name: Shapes(tuple(Argument(*one) for one in arguments), answer, about)
        for name, (arguments, answer, about) in kept.items()
    }

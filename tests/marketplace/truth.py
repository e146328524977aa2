"""Which element of each page is the one that a pack means, in each design: for tests of repairs.

`page(element, design)` is the page that has, or had, the element, as a visitor of one fixed shop
gets it, with the marks of the templates; `pages.unmarked` takes them out. No network is used.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Any

from . import goods, shop
from .answers import Request, Upload
from .shop import Shop
from .site import Site

DESIGNS = (1, 2, 3)
# The elements that the third design has given up.
GONE: dict[int, frozenset[str]] = {
    2: frozenset(),
    3: frozenset({
        "in_stock_only", "orders_all", "rows_read", "feedback_export",
        "account_export", "refunds_search", "nav_add",
    }),
}  # fmt: skip
_TODAY = date(2026, 11, 20)
# The page of each element: its path, and the state of the newest import that it needs.
_PAGES: dict[str, tuple[str, ...]] = {
    "/sign-in": ("sign_in_email", "sign_in_password", "sign_in_button"),
    "/second-factor": ("second_factor_code", "second_factor_button"),
    "/challenge": ("challenge_box", "challenge_button"),
    "/": (
        "nav_pricing", "nav_import", "nav_add", "nav_orders", "nav_feedback", "nav_payments",
        "nav_account", "sign_out",
    ),
    "/pricing": (
        "product_line", "set_name", "in_stock_only", "pricing_search", "export_pricing",
        "import_link", "next_page",
    ),
    "/pricing/import": ("price_file", "upload_button", "staged_link", "password_again"),
    "/pricing/imports/1": ("status_published",),
    "/pricing/imports/2": ("status_discarded",),
    "/pricing/imports/3": (
        "report_title", "rows_read", "rows_accepted", "rows_rejected", "status_staged",
        "report_download", "publish_button", "discard_button",
    ),
    "/pricing/lookup": ("lookup_ids", "lookup_button", "lookup_download"),
    f"/pricing/cards/{goods.FIRST_ID}": ("card_price",),
    "/inventory/add": (
        "add_card_id", "add_condition", "add_quantity", "add_price", "add_button", "added_note",
        "form_error",
    ),
    "/orders": (
        "orders_from", "orders_to", "orders_search", "orders_export", "shipping_export",
        "pull_sheet_export", "orders_last_90", "orders_all", "buyer_names",
    ),
    "ORDER": ("buyer_addresses", "buyer_emails"),
    "/refunds": ("refunds_from", "refunds_to", "refunds_search", "refunds_export"),
    "/feedback": ("feedback_from", "feedback_to", "feedback_search", "feedback_export"),
    "/payments": ("report_month", "show_month", "sales_export"),
    "/account": ("store_name", "seller_level", "account_email", "account_export"),
}  # fmt: skip
_PATH_OF = {element: path for path, elements in _PAGES.items() for element in elements}
ELEMENTS = tuple(_PATH_OF)


def address(element: str) -> str:
    """The address of the element's page, without a query."""
    return f"http://127.0.0.1:8765{_PATH_OF[element]}"


def page(element: str, design: int) -> str:
    """The page with its marks: `mark="<element>"` is on the right element, or on none."""
    return _page(_PATH_OF[element], design, element)


@lru_cache(maxsize=256)
def _page(path: str, design: int, element: str) -> str:
    site, token = _visited(design)
    asked = Request("GET", path, token=token)
    match element:
        case "second_factor_code" | "second_factor_button":
            site.shop.sessions[token] = "second_factor"
        case "challenge_box" | "challenge_button":
            site.shop.switches.captcha = True
        case "password_again":
            site.faults.set({"fault": "password_again", "count": None})
        case "added_note" | "form_error":
            asked = Request("POST", path, _new_card(site, element == "added_note"), token)
        case "buyer_addresses" | "buyer_emails":
            asked = Request("GET", f"/orders/{site.shop.orders[0].number}", token=token)
    return site.answer(asked).marked


def _visited(design: int) -> tuple[Site, str]:
    """A shop with a published, a discarded and a staged import, and the token of its seller."""
    site = Site(Shop(goods.make(60, 60, _TODAY), _TODAY, design))
    site.shop.switches.second_factor = False
    token = site.shop.sign_in(shop.EMAIL, shop.PASSWORD) or ""
    rows = "".join(f"{id_},0,1.25\r\n" for id_ in [*list(site.shop.cards)[:40], 1])
    content = f"TCGplayer Id,Add to Quantity,TCG Marketplace Price\r\n{rows}".encode()
    for number, then in enumerate((site.shop.publish, site.shop.discard, None), start=1):
        form: dict[str, Any] = {}
        upload = Upload("price-updates.csv", content)
        site.answer(Request("POST", "/pricing/import", form, token, upload))
        if then is not None:
            then(number)
    return site, token


def _new_card(site: Site, right: bool) -> dict[str, str]:
    card = site.shop.cards[goods.FIRST_ID]
    quantity = "1" if right else "0"
    return {
        "card_id": str(card.id), "condition": card.condition, "quantity": quantity, "price": "2",
    }  # fmt: skip

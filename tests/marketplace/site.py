"""The pages of the simulated marketplace: what each address shows and does. The same for every
design; `pages.py` draws them.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any, TypeVar
from urllib.parse import urlencode

from . import files, pages, shop
from .answers import Answer, Request, csv_file, redirect
from .faults import BadFault, Faults
from .goods import CONDITIONS, LINES, Order
from .shop import Import, Shop, Switches

Handler = Callable[["Site", Request], Answer]
T = TypeVar("T")
CARDS_A_PAGE, ORDERS_A_PAGE, LINES_A_PAGE, MOST_LOOKED_UP = 50, 25, 50, 200
COOKIE = "seller_session"
_PUBLIC = ("/sign-in", "/_state", "/_control")
_STAGES = {"second_factor": "/second-factor", "challenge": "/challenge"}
_ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def _route(method: str, pattern: str) -> Callable[[Handler], Handler]:
    def added(handler: Handler) -> Handler:
        _ROUTES.append((method, re.compile(pattern), handler))
        return handler

    return added


class Site:
    def __init__(self, market: Shop) -> None:
        self.shop, self.faults = market, Faults()

    def answer(self, asked: Request) -> Answer:
        if gate := self._gate(asked):
            return gate
        for method, pattern, handler in _ROUTES:
            if method == asked.method and pattern.fullmatch(asked.path):
                return handler(self, asked)
        return self.page(asked, "not_found", status=404)

    def _gate(self, asked: Request) -> Answer | None:
        """Where the seller must sign in, enter a code or pass the challenge first."""
        if asked.path in _PUBLIC:
            return None
        if self.faults.take("expired_session", asked.path):
            self.shop.end_sessions()
        stage = self.shop.stage(asked.token)
        if stage is None:
            return redirect("/sign-in?" + urlencode({"next": _back(asked)}))
        needed = _STAGES.get(stage)
        if needed and asked.path not in (needed, "/sign-out"):
            return redirect(f"{needed}?" + urlencode({"next": _back(asked)}))
        return None

    def page(self, asked: Request, name: str, status: int = 200, **shown: Any) -> Answer:
        removed = {
            str(fault.details.get("element"))
            for fault in self.faults.take_all("remove", asked.path)
        }
        switches = self.shop.switches
        marked = pages.drawn(
            switches.design,
            name,
            removed,
            {
                "store": shop.STORE,
                "menus_open": switches.menus_open,
                "path": asked.path,
                "form": asked.form,
                "next": _next(asked),
                "signed_in": self.shop.stage(asked.token) == "in",
                **shown,
            },
        )
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return Answer(status, pages.unmarked(marked).encode(), headers, marked=marked)


def _back(asked: Request) -> str:
    """Where the seller goes on after signing in: the page that was asked for, if it is one."""
    if asked.method != "GET" or asked.path.endswith(".csv") or asked.path in _STAGES.values():
        return _next(asked)
    return f"{asked.path}?{urlencode(asked.form)}" if asked.form else asked.path


def _next(asked: Request) -> str:
    """Only a path of this site is followed."""
    to = asked.form.get("next", "/")
    return to if re.fullmatch(r"/(?![/\\])[^\s\\]*", to) else "/"


def _paged(asked: Request, rows: Sequence[T], size: int) -> dict[str, Any]:
    """The rows of the page that is asked for, and the links to those beside it."""
    last = max(1, -(-len(rows) // size))
    text = asked.form.get("page", "1")
    number = min(last, max(1, int(text) if text.isascii() and text.isdigit() else 1))

    def link(to: int) -> str:
        return "?" + urlencode(asked.form | {"page": str(to)})

    return {
        "rows": rows[(number - 1) * size : number * size],
        "total": len(rows),
        "page_number": number,
        "last_page": last,
        "next_link": link(number + 1) if number < last else "",
        "previous_link": link(number - 1) if number > 1 else "",
    }


# Signing in


@_route("GET", "/sign-in")
def _sign_in(site: Site, asked: Request) -> Answer:
    return site.page(asked, "sign_in", error="")


@_route("POST", "/sign-in")
def _signed_in(site: Site, asked: Request) -> Answer:
    token = site.shop.sign_in(asked.form.get("email", ""), asked.form.get("password", ""))
    if token is None:
        error = "The email or the password is wrong."
        return site.page(asked, "sign_in", status=422, error=error)
    answer = redirect(_next(asked))
    # Without an age: the cookie ends with the browser.
    answer.headers["Set-Cookie"] = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax"
    return answer


@_route("GET", "/second-factor")
def _second_factor(site: Site, asked: Request) -> Answer:
    return site.page(asked, "second_factor", error="")


@_route("POST", "/second-factor")
def _code(site: Site, asked: Request) -> Answer:
    if site.shop.enter_code(asked.token, asked.form.get("code", "")):
        return redirect(_next(asked))
    return site.page(asked, "second_factor", status=422, error="That is not the code.")


@_route("GET", "/challenge")
def _challenge(site: Site, asked: Request) -> Answer:
    return site.page(asked, "challenge", error="")


@_route("POST", "/challenge")
def _challenged(site: Site, asked: Request) -> Answer:
    if "person" not in asked.form:
        return site.page(asked, "challenge", status=422, error="Check the box first.")
    site.shop.pass_challenge(asked.token)
    return redirect(_next(asked))


@_route("POST", "/sign-out")
def _sign_out(site: Site, asked: Request) -> Answer:
    site.shop.sign_out(asked.token)
    return redirect("/sign-in")


@_route("GET", "/")
def _home(site: Site, asked: Request) -> Answer:
    return site.page(
        asked, "home", cards=len(site.shop.cards), orders=len(site.shop.orders_between(None, None))
    )


# Prices


@_route("GET", "/pricing")
def _pricing(site: Site, asked: Request) -> Answer:
    found = site.shop.found(*_filter(asked))
    return site.page(
        asked, "pricing", lines=LINES, money=files.money, **_paged(asked, found, CARDS_A_PAGE)
    )


def _filter(asked: Request) -> tuple[str, str, bool]:
    form = asked.form
    return form.get("product_line", ""), form.get("set_name", ""), "in_stock" in form


@_route("GET", r"/pricing/export\.csv")
def _export(site: Site, asked: Request) -> Answer:
    with site.shop.lock:
        content = files.pricing(site.shop.found(*_filter(asked)))
    return csv_file("pricing-export.csv", content)


@_route("GET", "/pricing/import")
def _import(site: Site, asked: Request) -> Answer:
    if site.faults.take("password_again", asked.path):
        return site.page(asked, "password_again", error="")
    return _import_page(site, asked)


def _import_page(site: Site, asked: Request, status: int = 200, error: str = "") -> Answer:
    newest = site.shop.imports[::-1][:10]
    return site.page(
        asked, "import_prices", status=status, imports=newest, staged=site.shop.staged(),
        most_rows=site.shop.switches.most_rows, error=error,
    )  # fmt: skip


@_route("POST", "/confirm-password")
def _confirmed(site: Site, asked: Request) -> Answer:
    if asked.form.get("password") != shop.PASSWORD:
        return site.page(asked, "password_again", status=422, error="That is not the password.")
    site.faults.clear("password_again")
    return redirect("/pricing/import")


@_route("POST", "/pricing/import")
def _imported(site: Site, asked: Request) -> Answer:
    if asked.upload is None or not asked.upload.name:
        return _import_page(site, asked, 422, "Choose a file first.")
    made = site.shop.stage_import(
        asked.upload.name, asked.upload.content, lambda lines: _refusals(site, asked, lines)
    )
    if made.status == "refused":
        return _import_page(site, asked, 422, made.error)
    return redirect(f"/pricing/imports/{made.id}")


def _refusals(site: Site, asked: Request, lines: list[files.Line]) -> dict[int, str]:
    if (fault := site.faults.take("reject_rows", asked.path)) is None:
        return {}
    details = fault.details
    ids = details.get("ids") or [line.id for line in lines[: int(details.get("rows", 1))]]
    return {int(id_): str(details.get("reason", "the price is too low")) for id_ in ids}


@_route("GET", "/pricing/staged")
def _staged(site: Site, asked: Request) -> Answer:
    found = site.shop.staged()
    return redirect(f"/pricing/imports/{found.id}" if found else "/pricing/import")


def _of_import(site: Site, asked: Request) -> Import | None:
    return site.shop.import_of(int(asked.path.split("/")[3]))


@_route("GET", r"/pricing/imports/\d{1,9}")
def _report(site: Site, asked: Request) -> Answer:
    if (found := _of_import(site, asked)) is None or found.status == "refused":
        return site.page(asked, "not_found", status=404)
    return site.page(asked, "report", found=found, **_paged(asked, found.rejected, LINES_A_PAGE))


@_route("GET", r"/pricing/imports/\d{1,9}/report\.csv")
def _report_file(site: Site, asked: Request) -> Answer:
    if (found := _of_import(site, asked)) is None:
        return site.page(asked, "not_found", status=404)
    return csv_file(f"import-report-{found.id}.csv", files.report(found.rejected))


@_route("POST", r"/pricing/imports/\d{1,9}/publish")
def _published(site: Site, asked: Request) -> Answer:
    if (found := _of_import(site, asked)) is None:
        return site.page(asked, "not_found", status=404)
    fault = site.faults.take("wrong_price", asked.path) if found.status == "staged" else None
    wrong = (fault.details.get("id"), int(fault.details.get("by", 100))) if fault else None
    site.shop.publish(found.id, wrong)
    return redirect(f"/pricing/imports/{found.id}")


@_route("POST", r"/pricing/imports/\d{1,9}/discard")
def _discarded(site: Site, asked: Request) -> Answer:
    if (found := _of_import(site, asked)) is None:
        return site.page(asked, "not_found", status=404)
    site.shop.discard(found.id)
    return redirect(f"/pricing/imports/{found.id}")


@_route("GET", "/pricing/lookup")
def _lookup(site: Site, asked: Request) -> Answer:
    found, missing = _looked_up(site, asked)
    return site.page(
        asked, "lookup", rows=found, missing=missing, money=files.money,
        most=MOST_LOOKED_UP, ids=asked.form.get("ids", ""),
    )  # fmt: skip


@_route("GET", r"/pricing/lookup\.csv")
def _lookup_file(site: Site, asked: Request) -> Answer:
    with site.shop.lock:
        return csv_file("card-prices.csv", files.pricing(_looked_up(site, asked)[0]))


def _looked_up(site: Site, asked: Request) -> tuple[list[Any], list[str]]:
    ids = re.findall(r"\d{1,18}", asked.form.get("ids", ""))[:MOST_LOOKED_UP]
    cards = site.shop.cards
    found = [cards[int(id_)] for id_ in dict.fromkeys(ids) if int(id_) in cards]
    return found, [id_ for id_ in ids if int(id_) not in cards]


@_route("GET", r"/pricing/cards/\d{1,18}")
def _card(site: Site, asked: Request) -> Answer:
    card = site.shop.cards.get(int(asked.path.split("/")[3]))
    if card is None:
        return site.page(asked, "not_found", status=404)
    return site.page(asked, "card", card=card, money=files.money)


@_route("GET", "/inventory/add")
def _add(site: Site, asked: Request) -> Answer:
    return site.page(asked, "quick_add", conditions=_conditions(), error="", added="")


@_route("POST", "/inventory/add")
def _added(site: Site, asked: Request) -> Answer:
    given = [asked.form.get(name, "") for name in ("card_id", "condition", "quantity", "price")]
    error = site.shop.add_card(*given)
    return site.page(
        asked, "quick_add", status=422 if error else 200, conditions=_conditions(), error=error,
        added="" if error else given[0],
    )  # fmt: skip


def _conditions() -> list[str]:
    return [*CONDITIONS, "Unopened"]


# Orders and money


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _days(asked: Request) -> tuple[date | None, date | None]:
    return _day(asked.form.get("from")), _day(asked.form.get("to"))


def _between(site: Site, asked: Request) -> list[Order]:
    return site.shop.orders_between(*_days(asked))


def _orders_page(site: Site, asked: Request, name: str, rows: Sequence[Order]) -> Answer:
    today = site.shop.today
    return site.page(
        asked, name, money=files.money, today=today.isoformat(),
        since=(today - timedelta(days=90)).isoformat(), earliest="2020-01-01",
        days={key: asked.form[key] for key in ("from", "to") if asked.form.get(key)},
        **_paged(asked, rows, ORDERS_A_PAGE),
    )  # fmt: skip


@_route("GET", "/orders")
def _orders(site: Site, asked: Request) -> Answer:
    return _orders_page(site, asked, "orders", _between(site, asked))


@_route("GET", r"/orders/export\.csv")
def _order_list(site: Site, asked: Request) -> Answer:
    return csv_file("order-list.csv", files.orders(_between(site, asked)))


@_route("GET", r"/orders/shipping\.csv")
def _shipping(site: Site, asked: Request) -> Answer:
    return csv_file("shipping-export.csv", files.shipping(_between(site, asked)))


@_route("GET", r"/orders/pull-sheet\.csv")
def _pull_sheet(site: Site, asked: Request) -> Answer:
    return csv_file("pull-sheet.csv", files.pull_sheet(site.shop.orders, site.shop.cards))


@_route("GET", r"/orders/[0-9A-F-]{10,30}")
def _order(site: Site, asked: Request) -> Answer:
    number = asked.path.rpartition("/")[2]
    found = next((one for one in site.shop.orders if one.number == number), None)
    if found is None:
        return site.page(asked, "not_found", status=404)
    return site.page(asked, "order", order=found, cards=site.shop.cards, money=files.money)


@_route("GET", "/refunds")
def _refunds(site: Site, asked: Request) -> Answer:
    found = [one for one in _between(site, asked) if one.refund]
    return _orders_page(site, asked, "refunds", found)


@_route("GET", r"/refunds/export\.csv")
def _refund_file(site: Site, asked: Request) -> Answer:
    return csv_file("refunds.csv", files.refunds(_between(site, asked)))


@_route("GET", "/feedback")
def _feedback(site: Site, asked: Request) -> Answer:
    found = [one for one in _between(site, asked) if one.rating]
    return _orders_page(site, asked, "feedback", found)


@_route("GET", r"/feedback/export\.csv")
def _feedback_file(site: Site, asked: Request) -> Answer:
    return csv_file("feedback.csv", files.feedback(_between(site, asked)))


def _month(site: Site, asked: Request) -> tuple[date, date]:
    """The first and last day of the month that is asked for, else of the last whole one."""
    day = _day(asked.form.get("month", "") + "-01")
    first = day or (site.shop.today.replace(day=1) - timedelta(days=1)).replace(day=1)
    return first, first.replace(day=calendar.monthrange(first.year, first.month)[1])


@_route("GET", "/payments")
def _payments(site: Site, asked: Request) -> Answer:
    first, last = _month(site, asked)
    figures, _ = files.sales(first, last, site.shop.sold_in(first, last))
    month, months = site.shop.today.replace(day=1), []
    for _ in range(24):
        months.append(month)
        month = (month - timedelta(days=1)).replace(day=1)
    return site.page(asked, "payments", first=first, months=months, figures=figures)


@_route("GET", r"/payments/report\.csv")
def _payments_file(site: Site, asked: Request) -> Answer:
    first, last = _month(site, asked)
    _, content = files.sales(first, last, site.shop.sold_in(first, last))
    return csv_file(f"sales-{first:%Y-%m}.csv", content)


_LEVEL, _RATING = "Level 4", "99.6"


@_route("GET", "/account")
def _account(site: Site, asked: Request) -> Answer:
    return site.page(asked, "account", level=_LEVEL, rating=_RATING, lines=LINES, email=shop.EMAIL)


@_route("GET", r"/account/summary\.csv")
def _account_file(site: Site, asked: Request) -> Answer:
    row = (shop.STORE, _LEVEL, _RATING, "|".join(LINES))
    return csv_file("account.csv", files.account(row))


# For tests


@_route("GET", "/_state")
def _state(site: Site, asked: Request) -> Answer:
    body = site.shop.state(rows=asked.form.get("rows") != "0")
    return Answer(200, body, {"Content-Type": "application/json"})


def control(site: Site, told: dict[str, Any]) -> dict[str, Any]:
    """Set or clear faults and switches. Raises BadFault; README.md lists what there is."""
    told = dict(told)
    if "clear" in told:
        kind = told.pop("clear")
        site.faults.clear(None if kind is True else str(kind))
    if "fault" in told:
        site.faults.set(told)
        told = {}
    known = {one.name for one in fields(Switches)}
    if unknown := told.keys() - known:
        raise BadFault(f"{sorted(unknown)[0]} is neither a fault nor one of {sorted(known)}")
    with site.shop.changing():
        for name, value in told.items():
            setattr(site.shop.switches, name, value)
    return {"faults": site.faults.listed(), "switches": vars(site.shop.switches)}


def controlled(site: Site, body: bytes) -> Answer:
    try:
        told = json.loads(body or b"{}")
        result, status = control(site, told if isinstance(told, dict) else {"fault": None}), 200
    except (BadFault, ValueError, TypeError) as problem:
        result, status = {"error": str(problem)}, 400
    return Answer(status, json.dumps(result).encode(), {"Content-Type": "application/json"})

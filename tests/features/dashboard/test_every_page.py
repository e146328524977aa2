"""All pages of the table in `pages.py`, over HTTP: the figures of their JSON reads, the roles, and
names that try to be more than text.
"""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from markupsafe import escape

from browsers import A_PASSWORD, accept, invited, joined, operates, signed_in
from cardsync.dashboard.formats import Reader, zone_of
from cardsync.platform import clock
from dashboard_builder import filled_shop
from notices_builder import of_service, reaching
from pages import PAGES, built, filled, routes_of_the_door

MARK = "x-bad"
IDS = (
    "card_id", "list_id", "order_id", "upload_id", "cycle_id", "session_id", "rule_id", "run_id",
    "count_id", "box", "key", "seller_id", "webhook_id", "customer_id", "offer_id",
    "collection_id",
)  # fmt: skip
# One tag and a handler, in the ways that a name can try to be one.
HOSTILE = {
    "markup": f"<{MARK} onclick=alert(1)>A & B</{MARK}><script>{MARK}</script>",
    "quotes": f'"\'><{MARK} onmouseover="x" a=\'',
    "right to left": f"\u202e<{MARK}>right\u202c \u05d0\u05d1",
    "zero width": f"zero\u200bwidth\u2060 <{MARK}>",
    "500 characters": f"<{MARK}>" + "long" * 123,
}
# The text of these is a name's own place: its direction cannot reach its neighbours.
ISOLATED = {"bdi", "title", "option", "textarea", "code", "text"}
VOID = {"input", "meta", "link", "br", "hr", "img", "use", "path", "line", "circle", "col", "wbr"}


class Read(HTMLParser):
    """The page as a browser reads it: its tags and handlers, and the names outside of isolation."""

    def __init__(self, page):
        super().__init__()
        self.open, self.bad, self.loose = [], [], []
        self.buttons = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == MARK or any(name.startswith("on") for name, _ in attrs):
            self.bad.append((tag, attrs))
        if tag == "script" and not dict(attrs).get("src"):
            self.bad.append((tag, attrs))
        if tag == "form" and dict(attrs).get("method") == "post":
            self.buttons.append(dict(attrs)["action"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if MARK in data and not ISOLATED & set(self.open):
            self.loose.append((self.open[-1:], data.strip()[:80]))


def reader():
    return Reader("en", zone_of("America/New_York"), clock.now())


def test_every_page_of_the_door_stands_in_the_table():
    assert routes_of_the_door() - {page.route for page in PAGES} == set()
    assert len({page.route for page in PAGES}) == len(PAGES)


async def test_each_page_shows_the_figures_of_its_json_read(a_seller):
    seller, ids = await filled_shop(a_seller)
    browser = await signed_in(seller)
    missing = {}
    for page in built():
        shown = await browser.get(page.address(ids))
        assert shown.status_code == 200, page.route
        if page.figures is None:
            continue
        answers = [await browser.get(filled(read, ids)) for read in page.reads]
        assert {answer.status_code for answer in answers} == {200}, page.reads
        told = set(page.figures([answer.json() for answer in answers], reader()))
        assert told, page.route
        missing[page.route] = sorted(figure for figure in told if figure not in shown.text)
    assert {route: figures for route, figures in missing.items() if figures} == {}


async def test_staff_is_refused_what_owners_alone_have_and_sees_no_way_there(a_seller):
    seller, ids = await filled_shop(a_seller)
    staff = await joined(seller, f"staff-{seller.email}")
    owners = [page.address(ids) for page in built() if page.owner_only]
    for page in built():
        answer = await staff.get(page.address(ids))
        assert answer.status_code == (403 if page.owner_only else 200), page.route
        for address in owners:
            assert f'href="{address}"' not in answer.text, (page.route, address)
        # The refusal is the API's: the JSON read of an owner's page is not for staff either.
        for read in page.reads if page.owner_only else ():
            assert (await staff.get(filled(read, ids))).status_code == 403, read


async def test_no_form_that_staff_sees_is_refused_for_the_role(a_seller):
    """Each button of a page is one that its reader may press."""
    seller, ids = await filled_shop(a_seller)
    staff = await joined(seller, f"staff-{seller.email}")
    actions = set()
    for page in built():
        if not page.owner_only and page.route != "/styleguide":
            actions |= set(Read((await staff.get(page.address(ids))).text).buttons)
    refused = []
    for action in sorted(actions):
        form = {"csrf_token": staff.session["csrf_token"]}
        answer = await staff.http.post(action, data=form)
        if answer.status_code == 403:
            refused.append((action, answer.text[-400:]))
    assert refused == []


async def test_forms_of_all_pages_ask_for_their_token(a_seller):
    seller, ids = await filled_shop(a_seller)
    browser = await signed_in(seller)
    for page in built():
        for action in set(Read((await browser.get(page.address(ids))).text).buttons):
            if urlsplit(action).path.startswith("/styleguide"):
                continue
            answer = await browser.http.post(action, data={"csrf_token": "another"})
            assert answer.status_code in (403, 405), (page.route, action, answer.status_code)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
async def test_names_are_text_on_every_page_and_stand_for_themselves(a_seller, name):
    seller, ids = await filled_shop(a_seller, name)
    browser = await signed_in(seller)
    account = {"store_name": name[:100]}
    assert (await browser.send("PATCH", "/api/account", json=account)).status_code == 200
    assert (await browser.post("/api/keys", json={"name": name[:100]})).status_code == 201
    _, token = await invited(seller, f"guest-{seller.email}")
    told = {"name": name[:100], "password": A_PASSWORD}
    answer, _ = await accept(seller.service, token, **told)
    assert answer.status_code == 201, answer.text
    renamed = await browser.post("/api/lists", json={"name": f"2 {name[:90]}"})
    assert renamed.status_code in (200, 201), renamed.text
    found, seen = {}, 0
    for page in built():
        text = (await browser.get(page.address(ids))).text
        read = Read(text)
        assert read.bad == [], page.route
        found[page.route] = read.loose
        seen += str(escape(name[:30])) in text
    assert {route: loose for route, loose in found.items() if loose} == {}
    assert seen >= 6


async def test_an_unknown_id_is_a_page_that_says_so(a_seller):
    seller = await a_seller()
    await operates(seller)
    browser = await signed_in(seller)
    ids = dict.fromkeys(IDS, 999_999)
    for page in built():
        # A box that holds nothing is empty, not unknown.
        if "{" in page.route and "{box" not in page.route:
            answer = await browser.get(page.address(ids))
            assert answer.status_code == 404, page.route
            assert "Not found" in answer.text, page.route


async def test_strangers_are_sent_to_the_sign_in_page_from_everywhere(a_seller):
    seller = await a_seller()
    ids = dict.fromkeys(IDS, 1)
    async with seller.service.client() as stranger:
        for page in built("page", "redirect", "file"):
            answer = await stranger.get(page.address(ids))
            assert answer.status_code == 303, page.route
            assert answer.headers["location"].startswith("/sign-in?next="), page.route


async def test_developers_see_all_components(a_seller, service, alive):
    seller = await a_seller()
    assert (await (await signed_in(seller)).get("/styleguide")).status_code == 404
    async with reaching(service, alive, development_pages=True) as changed:
        page = await (await signed_in(of_service(seller, changed))).get("/styleguide")
    assert page.status_code == 200
    assert "sort=name" in page.text

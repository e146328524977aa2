"""The pages of a shop in a real browser: Debian's chromium, against a real server with a small
shop. Nothing is installed here; without chromium these are skipped.

Every page is looked at on a telephone and on a desktop, light and dark; the journeys are made with
the keyboard alone and without JavaScript.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages, recommended

from pages import built

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
AXE_TEXT = AXE.read_text() if AXE.exists() else ""
# `make test` looks at the narrowest, the soak at all pairs of widths and schemes.
LOOKS = [
    (360, "light"),
    pytest.param(1440, "dark", marks=pytest.mark.soak),
    pytest.param(360, "dark", marks=pytest.mark.soak),
    pytest.param(1440, "light", marks=pytest.mark.soak),
]
# A refusal that the test asked for is told by its status; what a page still loads when it is left
# is broken off.
REFUSALS = [f"the server responded with a status of {status}" for status in (403, 404, 422)]
EXPECTED = (*REFUSALS, "net::ERR_ABORTED")
FAILURE = "the server responded with a status of 500"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]

VIOLATIONS = """() => axe.run(document).then(found => found.violations.map(
  one => [one.id, ...one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))"""
OVERFLOWING = """() => { const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1)
    .map(e => e.outerHTML.slice(0, 120)).slice(0, 5); }"""
FOCUSED = "() => document.activeElement.id || document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    made = a_shop_with_pages(server)
    recommended(made)
    return made


@contextmanager
def a_window(
    browser: Browser, shop: Shop, expected: Sequence[str] = EXPECTED, **options: Any
) -> Iterator[Page]:
    """A page of a fresh profile, signed in. What the browser complains of meanwhile, the policy's
    violations among it, is an error, and so is a request to another origin.
    """
    url = shop.seller.server.url
    context = browser.new_context(base_url=url, **options)
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url}: {request.failure}"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/sign-in")
    page.get_by_label("Email").fill(shop.email)
    page.get_by_label("Password").fill(shop.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/today")
    yield page
    context.close()
    assert [text for text in complaints if not any(part in text for part in expected)] == []
    assert [one for one in asked if not one.startswith((f"{url}/", "data:"))] == []


def found(page: Page) -> list[Any]:
    """Violations found by axe-core, and elements that overflow. CSP does not bind the devtools."""
    page.evaluate(AXE_TEXT)
    return [*page.evaluate(VIOLATIONS), *page.evaluate(OVERFLOWING)]


def look(page: Page, name: str) -> None:
    assert found(page) == [], name


def ids_of(page: Page, shop: Shop) -> dict[str, int | str]:
    """The ids that pages of one thing are asked with; the card has the hostile name."""
    firsts = {
        "card_id": ("/api/cards?per_page=1&sort=name", "cards", "id"),
        "order_id": ("/api/orders?per_page=1&search=Buyer", "orders", "id"),
        "list_id": ("/api/lists", "lists", "id"),
        "cycle_id": ("/api/v1/sync/cycles", "cycles", "id"),
        "rule_id": ("/api/pricing/rules", "rules", "id"),
        "run_id": ("/api/pricing/runs", "runs", "id"),
        "key": ("/api/customers", "customers", "key"),
    }
    ids: dict[str, int | str] = {
        name: page.request.get(path).json()[rows][0][field]
        for name, (path, rows, field) in firsts.items()
    }
    return (
        ids
        | {"upload_id": shop.upload_id, "session_id": shop.session_id}
        | {"seller_id": shop.seller.id}
        | {"box": 1, "count_id": _counted(page, int(ids["card_id"]))}
    )


def _counted(page: Page, card_id: int) -> int:
    """Put a card into a box and begin its count, once."""
    known: list[dict[str, int]] = page.request.get("/api/counts?box=1").json()["counts"]
    if known:
        return known[0]["id"]
    headers = {"X-CSRF-Token": page.request.get("/api/session").json()["csrf_token"]}
    places = {"card_id": card_id, "box": 1, "slot": 1, "quantity": 1}
    page.request.post("/api/shelves/put", data=places, headers=headers)
    made = page.request.post("/api/counts", data={"box": 1}, headers=headers).json()
    return int(made["id"])


# Beside the table of pages: what a search finds and does not, the ends of tables, and refusals.
MORE = {
    "/cards?search=%22right%20to%20left%22": 200,
    "/cards?search=prise>1": 200,
    "/cards?search=nothing%20is%20called%20so": 200,
    "/cards?page=999": 200,
    "/orders?search=nobody": 200,
    "/orders?refund=true": 200,
    "/activity?action=nothing": 200,
    "/cards/999999": 404,
    # The page of failures of the whole service: an error within wears the same.
    "/nothing/is/here": 404,
    "/orders?date_from=yesterday": 422,
}


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_dialog_and_refusal_can_be_read_and_fits(
    browser: Browser, shop: Shop, width: int, scheme: Any
) -> None:
    """One window looks at all of them: what it finds is reported page by page."""
    size: Any = {"width": width, "height": 800}
    with a_window(browser, shop, viewport=size, color_scheme=scheme) as page:
        ids = ids_of(page, shop)
        paths = {one.address(ids): 200 for one in built("page", "development")} | MORE
        ugly = {}
        for path, status in paths.items():
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == status, path
            page.wait_for_load_state("networkidle")
            ugly[path] = found(page)
        for name in ("palette", "help", "dialog", "menu", "403"):
            page.goto("/styleguide")
            OPENED[name](page)
            ugly[name] = found(page)
        page.context.clear_cookies()
        for path in ("/sign-in", "/invitations/none"):
            page.goto(path)
            ugly[path] = found(page)
        assert {path: problems for path, problems in ugly.items() if problems} == {}


def _by_key(key: str, name: str) -> Callable[[Page], None]:
    def opened(page: Page) -> None:
        page.keyboard.press(key)
        page.locator(f"#{name}").wait_for()

    return opened


def _menu(page: Page) -> None:
    menu = page.locator("summary[aria-label=Menu]")
    if menu.is_visible():
        menu.click()


def _forged(page: Page) -> None:
    """Send a form with the token of another session."""
    page.goto("/lists")
    page.get_by_label("A new list").fill("Stolen")
    page.locator("main input[name=csrf_token]").first.evaluate("e => (e.value = 'another')")
    page.get_by_role("button", name="Make the list").click()
    page.get_by_role("heading", name="Not allowed").wait_for()


OPENED: dict[str, Callable[[Page], None]] = {
    "palette": _by_key("Control+k", "palette"),
    "help": _by_key("?", "help"),
    "dialog": lambda page: page.get_by_role("button", name="Open a dialog").click(),
    "menu": _menu,
    "403": _forged,
}


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_failure_of_ours_can_be_read_and_fits(
    browser: Browser, server: Server, shop: Shop, width: int, scheme: Any
) -> None:
    """The table of lists is away meanwhile, which is nothing that the page foresees."""
    size: Any = {"width": width, "height": 800}
    expected = (*EXPECTED, FAILURE)
    with a_window(browser, shop, expected, viewport=size, color_scheme=scheme) as page:
        server.sql("ALTER TABLE card_list RENAME TO card_list_away")
        try:
            answer = page.goto("/lists")
            assert answer is not None
            assert answer.status == 500
            page.get_by_text("Something went wrong on our side").wait_for()
            look(page, "500")
        finally:
            server.sql("ALTER TABLE card_list_away RENAME TO card_list")
        assert page.goto("/lists").status == 200  # type: ignore[union-attr]


def test_the_work_is_done_by_keys_alone(browser: Browser, shop: Shop) -> None:
    """Sync, a search and its first card onto a list, an order shipped and back."""
    with a_window(browser, shop) as page:
        command(page, "Sync now")
        page.locator(".notice.good").wait_for()
        page.keyboard.press("g")
        page.keyboard.press("c")
        page.wait_for_url("**/cards")
        page.keyboard.press("/")
        page.keyboard.type("ritual")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("search=ritual"))
        page.get_by_role("list", name="Parts of the search").wait_for()
        page.wait_for_load_state("networkidle")
        while page.evaluate(FOCUSED) == "search":  # The first Esc may close the completion.
            page.keyboard.press("Escape")
        for key in ("j", "x"):
            page.keyboard.press(key)
        ticked = page.locator("[name=card_ids]:checked")
        assert ticked.count() == 1
        added = page.get_by_role("button", name="Add to the list")
        for _ in range(60):  # Shift+Tab reaches it from the row.
            page.keyboard.press("Shift+Tab")
            if added.evaluate("e => e === document.activeElement"):
                break
        outline = added.evaluate("e => getComputedStyle(e).outlineStyle")
        assert outline != "none"
        page.keyboard.press("Enter")
        page.locator(".notice.good").wait_for()
        for key in ("g", "o"):
            page.keyboard.press(key)
        page.wait_for_url("**/orders")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/orders/\d+"))
        for said in ("Mark shipped", "Not shipped after all"):
            command(page, said)
            page.get_by_role("button", name=said).wait_for(state="detached")
        page.get_by_role("button", name="Mark shipped").wait_for()


def command(page: Page, name: str) -> None:
    """Choose an action of the page in the palette."""
    page.keyboard.press(".")
    page.locator("#palette").wait_for()
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def test_the_work_is_done_without_scripts(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop, java_script_enabled=False) as page:
        page.get_by_role("button", name="Sync now").click()
        page.get_by_text("Requested: a sync of kind").wait_for()
        page.goto("/cards?search=ritual")
        page.locator("[name=card_ids]").first.check()
        page.get_by_role("button", name="Add to the list").click()
        page.locator(".notice.good").wait_for()
        page.goto("/orders")
        page.locator("[data-rows] th a").first.click()
        page.get_by_role("button", name="Mark shipped").click()
        page.get_by_role("button", name="Not shipped after all").click()
        page.get_by_role("button", name="Mark shipped").wait_for()
        page.goto("/settings/shop")
        page.get_by_label("Name of your store").fill("A store without scripts")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").wait_for()


def test_icons_are_drawn(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards")
        page.wait_for_load_state("networkidle")
        icon = page.locator("header .me .icon use").locator("visible=true").first
        drawn = icon.evaluate("e => [e.getBBox().width, e.getBBox().height]")
        assert all(side > 10 for side in drawn)


def test_cards_are_searched_and_opened_by_keys(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards")
        page.keyboard.press("/")
        assert page.evaluate(FOCUSED) == "search"
        page.keyboard.type("is:fo")
        options = page.get_by_role("option", name="is:foil")
        options.wait_for()
        assert page.get_by_role("combobox", name="Search").get_attribute("aria-expanded") == "true"
        page.keyboard.press("ArrowDown")
        marked = page.locator("#search").get_attribute("aria-activedescendant")
        assert page.locator(f"#{marked}").inner_text() == "is:foil"
        page.keyboard.press("Enter")
        assert page.locator("#search").input_value() == "is:foil "
        page.wait_for_url(re.compile(r"/cards\?search=is%3Afoil"))
        page.get_by_role("list", name="Parts of the search").wait_for()
        page.keyboard.press("Escape")
        assert page.locator("#search").input_value() == "is:foil "
        for key, row in (("j", 0), ("j", 1), ("k", 0)):
            page.keyboard.press(key)
            assert page.locator("[data-rows] tr").nth(row).get_attribute("aria-current") == "true"
        name = page.evaluate(FOCUSED)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=name, level=1).wait_for()
        page.keyboard.press("Escape")
        page.wait_for_url(re.compile(r"/cards\?search=is%3Afoil"))


def test_why_a_card_asks_its_price_is_read_by_keys(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards?search=game:magic&sort=price&direction=desc")
        page.wait_for_load_state("networkidle")
        for key in ("j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url(re.compile(r"/cards/\d+"))
        why = page.get_by_role("region", name="Why this price")
        assert why.locator("li").count() > 3
        receipt = why.locator("summary", has_text="As the last sync saw it")
        for _ in range(80):
            page.keyboard.press("Tab")
            if receipt.evaluate("e => e === document.activeElement"):
                break
        page.keyboard.press("Enter")
        assert receipt.evaluate("e => e.parentElement.open")


def test_a_completion_is_closed_by_escape_and_taken_in_the_middle(
    browser: Browser, shop: Shop
) -> None:
    with a_window(browser, shop) as page:
        page.goto("/cards")
        field = page.locator("#search")
        field.fill("lotus price>1")
        field.evaluate("e => e.setSelectionRange(0, 0)")
        field.focus()
        page.keyboard.type("con")
        page.get_by_role("option", name="cond:").wait_for()
        page.keyboard.press("Escape")
        assert field.get_attribute("aria-expanded") == "false"
        assert field.input_value() == "conlotus price>1"
        page.keyboard.press("Alt+ArrowDown")
        page.get_by_role("option", name="cond:").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        assert field.input_value() == "cond:lotus price>1"
        assert page.evaluate(FOCUSED) == "search"


def test_pages_and_actions_are_reached_by_keys_and_focus_returns(
    browser: Browser, shop: Shop
) -> None:
    with a_window(browser, shop) as page:
        page.goto("/styleguide")
        page.keyboard.press("g")
        page.keyboard.press("c")
        page.wait_for_url("**/cards")
        for key, name in (("Control+k", "palette"), (".", "palette"), ("?", "help")):
            page.locator(".brand").focus()
            page.keyboard.press(key)
            assert page.locator(f"#{name}").is_visible()
            if name == "palette":
                page.keyboard.type("set")
                assert page.locator("#palette-list li:visible").count() >= 1
            page.keyboard.press("Escape")
            assert not page.locator(f"#{name}").is_visible()
            assert page.evaluate(FOCUSED) == "cardsync"
        page.goto("/styleguide")
        page.keyboard.press("Control+k")
        page.keyboard.type("Open a dial")
        page.keyboard.press("Enter")
        assert page.locator("#example").is_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        page.keyboard.type("cards")
        page.keyboard.press("Enter")
        page.wait_for_url("**/cards")


def test_the_theme_is_kept(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop, color_scheme="light") as page:
        page.goto("/cards")
        page.get_by_role("button", name="Light or dark").click()
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        look(page, "/cards in the reader's own dark")


def test_without_scripts_a_card_is_found_and_tells_why(browser: Browser, shop: Shop) -> None:
    with a_window(browser, shop, java_script_enabled=False) as page:
        page.goto("/cards")
        assert page.get_by_role("button", name="Commands").count() == 0
        page.get_by_label("Search", exact=True).fill("dark ritual")
        page.get_by_role("button", name="Search").click()
        page.wait_for_url(re.compile(r"/cards\?search=dark\+ritual"))
        page.get_by_role("link", name="Dark Ritual").first.click()
        page.get_by_role("heading", name="Dark Ritual", level=1).wait_for()
        why = page.get_by_role("region", name="Why this price")
        assert why.get_by_role("listitem").count() > 5
        assert page.get_by_text("As a table").first.is_visible()


def test_the_first_page_is_light(server: Server, shop: Shop) -> None:
    """Compressed over the wire: HTML and script under 60 KB each, style under 25 KB."""
    with shop.seller.http() as http:
        del http.headers["Authorization"]
        signed_in = {"email": shop.email, "password": shop.password}
        assert http.post("/api/session", json=signed_in).status_code == 200
        weights: dict[str, int] = {}
        with http.stream("GET", "/cards") as answer:
            weights["html"] = len(b"".join(answer.iter_raw()))
        page = http.get("/cards").text
        for kind, mark in (("css", 'href="'), ("js", 'src="')):
            linked = {part.split('"')[0] for part in page.split(mark)[1:]}
            weights[kind] = 0
            for address in sorted(linked):
                if address.startswith("/static/") and address.endswith(f".{kind}"):
                    with http.stream("GET", address) as answer:
                        weights[kind] += len(b"".join(answer.iter_raw()))
        assert 0 < weights["html"] <= 60_000, weights
        assert 0 < weights["js"] <= 60_000, weights
        assert 0 < weights["css"] <= 25_000, weights


HIDDEN = "Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })"
BEHIND = "document.hasFocus = () => false"


@pytest.mark.parametrize("script", [HIDDEN, BEHIND, ""])
def test_only_rows_that_were_seen_in_front_are_told(
    browser: Browser, shop: Shop, script: str
) -> None:
    small = {"viewport": {"width": 360, "height": 740}}
    with a_window(browser, shop, **small) as page:
        page.add_init_script(script)
        told: list[str] = []

        def note(request: Any) -> None:
            if request.url.endswith("/recommendations/shown"):
                told.extend(str(one["id"]) for one in request.post_data_json["observations"])

        page.on("request", note)
        page.goto("/recommendations")
        page.wait_for_timeout(1_500)
        rows = page.locator("tr[data-shown]")
        ids = [row.get_attribute("data-shown") for row in rows.all()]
        assert len(ids) > 2
        # The third row is below the screen.
        assert ids[2] not in told
        assert told == [] if script else told[:1] == ids[:1]
        rows.nth(2).evaluate("row => row.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(1_500)
        assert (ids[2] in told) == (not script)
        assert len(set(told)) == len(told)


def swiped(page: Page, by: int, cell: str = "td[data-label=Until]") -> None:
    """A finger goes over the first row of a queue, by so many pixels, and begins in a cell."""
    box = page.locator(f"tr[data-swipes] {cell}").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)

    def send(kind: str, *points: dict[str, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    send("touchStart", {"x": x, "y": y})
    for part in range(1, 9):
        send("touchMove", {"x": x + by * part / 8, "y": y + 2})
    send("touchEnd")


def test_a_price_is_dismissed_by_a_swipe_over_its_name_on_a_tablet(
    browser: Browser, shop: Shop
) -> None:
    tablet = {"viewport": {"width": 1_024, "height": 768}, "has_touch": True, "is_mobile": True}
    with a_window(browser, shop, **tablet) as page:
        page.goto("/pricing/reviews")
        swiped(page, -150)
        page.wait_for_timeout(300)
        assert page.url.endswith("/pricing/reviews")
        assert not page.get_by_text("1 price is dismissed.").count()
        swiped(page, -150, "th")
        page.get_by_text("1 price is dismissed.").wait_for()


def test_a_price_is_accepted_and_dismissed_by_a_swipe(browser: Browser, shop: Shop) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with a_window(browser, shop, **phone) as page:
        page.goto("/pricing/reviews")
        rows = page.locator("tr[data-swipes]")
        count = rows.count()
        assert count > 3
        swiped(page, -60)
        assert rows.count() == count
        for by, said in ((-150, "1 price is dismissed."), (150, "1 price is accepted.")):
            swiped(page, by)
            page.get_by_text(said).wait_for()


def test_a_queue_is_decided_by_keys(browser: Browser, shop: Shop) -> None:
    """The next row by j, then d, a or s; the chosen prices from the palette."""
    with a_window(browser, shop) as page:
        page.goto("/pricing/reviews")
        for key, said in (("d", "1 price is dismissed."), ("a", "1 price is accepted.")):
            page.keyboard.press(key)  # No row is the current one yet.
            page.wait_for_timeout(200)
            assert not page.get_by_text(said).count()
            page.keyboard.press("j")
            page.keyboard.press(key)
            page.get_by_text(said).wait_for()
        page.goto("/recommendations")
        second = page.locator("tr[data-shown]").nth(1).get_attribute("data-shown")
        for key in ("j", "j", "s"):
            page.keyboard.press(key)
        page.locator(".notice.good").wait_for()
        assert not page.locator(f"tr[data-shown='{second}']").count()
        for key in ("j", "x"):
            page.keyboard.press(key)
        command(page, "Look at the chosen")
        page.wait_for_url("**/recommendations/accept?take=*")
        assert page.locator("tbody tr").count() == 1

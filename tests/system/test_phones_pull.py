"""Two phones pull one game in a real browser: what one marks, the other shows within a second; one
loses its network and sends later; the server is killed between two marks. Nothing is lost, and no
copy is pulled twice.
"""

from __future__ import annotations

import shutil
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.system.processes import Server, kill, processes_of
from tests.system.processes import until as eventually
from tests.system.shop_with_pages import Shop, a_shop_with_pages
from tests.system.test_pages_in_browser import a_window, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]


@pytest.fixture(scope="module")
def shop(server: Server) -> Shop:
    return a_shop_with_pages(server)


def a_link(shop: Shop) -> tuple[int, str]:
    """Return the pull that is open, with the link of its largest game."""
    url = shop.seller.server.url
    with shop.seller.http() as http:
        session = shop.session_id
        orders = http.get(f"/api/pull_sessions/{session}").json()["orders"]
    games = [item["product_line"] or "" for order in orders for item in order["items"]]
    game = max(set(games), key=games.count)
    with httpx.Client(base_url=url) as member:
        signed_in = member.post(
            "/api/session", json={"email": shop.email, "password": shop.password}
        )
        member.headers["X-CSRF-Token"] = signed_in.json()["csrf_token"]
        body = {"session_id": session, "product_line": game}
        [made] = member.post("/api/pull_links", json=body).json()["links"]
    return session, url + made["url"][made["url"].index("/p/") :]


def a_phone(browser: Browser, link: str, late_script: bool = False) -> Page:
    """Open the link on a phone; with `late_script` the first page has its forms alone."""
    context = browser.new_context(viewport={"width": 360, "height": 800})
    context.set_default_timeout(60_000)
    page = context.new_page()
    if late_script:
        page.route("**/phone-pull*.js", lambda route: route.abort(), times=1)
    page.goto(link)
    page.locator("#current .marks button").first.wait_for()
    return page


def shown(page: Page) -> int:
    return int(page.locator("#progress progress").evaluate("bar => bar.value"))


# Reads and clicks in one step: between two, another phone may win the claim to the card.
_PULL = """() => {
  const quantity = document.querySelector("#current .quantity");
  document.querySelector("#current .marks button")?.click();
  return quantity ? parseInt(quantity.textContent.replace(/[^0-9]/g, "")) : 0;
}"""


def pull(page: Page) -> int:
    """Pull the card that is shown; return how many copies."""
    return int(page.wait_for_function(_PULL).json_value())


def pull_if_shown(page: Page) -> int:
    return int(page.evaluate(_PULL))


def until(page: Page, pulled: int, seconds: float) -> float:
    began = monotonic()
    page.wait_for_function(
        "pulled => document.querySelector('#progress progress').value === pulled",
        arg=pulled,
        timeout=seconds * 1000,
    )
    return monotonic() - began


def queue(link: str) -> Any:
    return httpx.get(f"{link}/queue").json()


def in_hand(link: str) -> int:
    return sum(line["pulled"] + line["surplus"] for line in queue(link)["lines"])


@pytest.mark.night
def test_two_phones_an_offline_span_and_a_killed_server(browser: Browser, shop: Shop) -> None:
    server = shop.seller.server
    _, link = a_link(shop)
    one, two = a_phone(browser, link), a_phone(browser, link)
    # The phones show different cards.
    one.wait_for_timeout(700)
    places = [page.locator("#current").inner_text() for page in (one, two)]
    assert places[0] != places[1]
    done = pull(one)
    until(two, done, 1.0)
    # The first phone works on without a network, and its page opens without one, too.
    one.wait_for_function("async () => (await (await caches.open('pull-1')).keys()).length > 2")
    one.context.set_offline(True)
    offline = pull(one) + pull(one)
    one.get_by_text("changes waiting to send").wait_for()
    one.reload()
    until(one, done + offline, 10)
    done += pull(two)
    one.context.set_offline(False)
    # Without a network both may take one copy: what is in hand is pulled, or told to be put back.
    done += offline
    eventually(lambda: in_hand(link) == done, "marks of the phone that was away", 20)
    # The server dies between two marks.
    until(two, queue(link)["progress"]["pulled"], 10)
    assert server.process is not None
    kill(*processes_of(server.data_dir))
    server.process.wait(60)
    done += pull(two)
    server.start()
    eventually(lambda: in_hand(link) == done, "mark of the time without a server", 60)
    told = queue(link)
    assert all(line["pulled"] <= line["wanted"] for line in told["lines"])
    until(one, told["progress"]["pulled"], 30)
    assert "Buyer" not in one.content() + two.content()


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1440, "light")])
def test_the_pages_of_a_pull_can_be_read_and_fit(
    browser: Browser, shop: Shop, width: int, scheme: Any
) -> None:
    size: Any = {"width": width, "height": 800}
    with a_window(browser, shop, viewport=size, color_scheme=scheme) as page:
        page.goto("/pulls")
        if page.get_by_role("link", name="Continue pull").count():
            page.get_by_role("link", name="Continue pull").click()
        else:
            page.get_by_role("button", name="Start pull (").click()
        page.get_by_role("heading", name="Orders in shelf order").wait_for()
        look(page, "the pull")
        page.get_by_role("button", name="More for this pull").click()
        page.get_by_role("button", name="Print QR codes by game").click()
        page.locator("img.qr").first.wait_for()
        look(page, "the cover sheet")
        page.get_by_role("link", name="Pull on this device").first.click()
        page.locator("#current .marks").wait_for()
        look(page, "the phone's page")
        page.get_by_role("button", name="Missing").click()
        page.get_by_role("button", name="None here").wait_for()
        look(page, "what is missing")


@pytest.mark.night
def test_a_refused_mark_blocks_no_other_and_is_told(browser: Browser, shop: Shop) -> None:
    _, link = a_link(shop)
    page = a_phone(browser, link)
    before = in_hand(link)
    item = next(line for line in queue(link)["lines"] if line["state"] == "waiting")["item_id"]
    page.evaluate(
        """([token, item]) => localStorage.setItem(`pull-outbox-${token}`, JSON.stringify([
            { id: "bad", kind: "pulled", item_id: item, sequence: 1, quantity: 1, undoes: "" },
            { id: "a-good-mark-1", kind: "pulled", item_id: item, sequence: 2, quantity: 1,
              undoes: "" }]))""",
        [link.rpartition("/")[2], item],
    )
    page.reload()
    page.get_by_role("heading", name="Changes not sent yet").wait_for()
    eventually(lambda: in_hand(link) == before + 1, "the mark behind the refused one", 20)
    page.get_by_role("button", name="Clear these").click()
    page.get_by_role("heading", name="Changes not sent yet").wait_for(state="hidden")
    page.context.close()


def test_what_an_ended_link_could_not_send_is_kept_and_sent_by_the_next(
    browser: Browser, shop: Shop
) -> None:
    session, link = a_link(shop)
    page = a_phone(browser, link)
    before = in_hand(link)
    page.context.set_offline(True)
    done = pull(page)
    page.get_by_text("change waiting to send").wait_for()
    with httpx.Client(base_url=shop.seller.server.url) as member:
        told = member.post("/api/session", json={"email": shop.email, "password": shop.password})
        member.headers["X-CSRF-Token"] = told.json()["csrf_token"]
        for one in member.get("/api/pull_links", params={"session_id": session}).json()["links"]:
            member.delete(f"/api/pull_links/{one['id']}")
    page.context.set_offline(False)
    page.get_by_role("heading", name="Changes not sent yet").wait_for()
    page.goto(link)
    page.get_by_text("ask at the desk").wait_for()
    assert page.locator("#kept li").count() == 1
    _, other = a_link(shop)
    page.goto(other)
    eventually(lambda: in_hand(other) == before + done, "the mark that the first link kept", 20)
    page.context.close()

"""A shoebox of 28 cards in a real browser, from the customer's file to listings with prices and cost,
and places, in at most ten clicks: a printing is chosen by its digit, and the customer accepts on a
phone, which the desk shows by itself.

It takes some seconds, and alone finds a step that needs a click more, or a price that gets lost on
the way.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.system.processes import Server
from tests.system.shop_with_pages import Shop, a_shop_with_pages
from tests.system.test_counter_afternoon import a_phone
from tests.system.test_pages_in_browser import a_window, look

from builders import a_csv, a_row
from cardsync.catalog.load_catalog import COLUMNS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(
        shutil.which("chromium") is None, reason="needs chromium (Debian: apt install chromium)"
    ),
]
# Nine cards; of the last there are two printings, and the list says neither.
CARDS = [(f"Shoe {at}", str(at)) for at in range(1, 9)] + [("Twin Shoe", "9"), ("Twin Shoe", "10")]
BOX = "\n".join([f"3 Shoe {at}" for at in range(1, 9)] + ["4 Twin Shoe"])
SHELVED = """
    INSERT INTO card_location (seller_id, card_id, box, slot, quantity)
    SELECT seller_id, min(id), 1, 40, 1 FROM card WHERE seller_id = %(seller)s GROUP BY seller_id
    RETURNING slot
"""
STOCKED = """
    SELECT product_name, quantity, price, cost, status, box, slot FROM quick_add
     WHERE seller_id = %(seller)s ORDER BY product_name
"""


@pytest.fixture(scope="module")
def shop(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    made = a_shop_with_pages(server, hostile=False)
    path: Path = tmp_path_factory.mktemp("catalog") / "catalog.csv"
    usual = {"game": "magic", "set_name": "Shoebox", "rarity": "Rare", "language": "en"}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(usual | {"product_name": name, "number": n} for name, n in CARDS)
    assert server.run("catalog", "import", str(path)).code == 0
    rows = [
        a_row(
            9_000 + at, name=name, number=number, set="Shoebox", market="12.00",
            condition="Lightly Played", quantity=1, price="13.00",
        )
        for at, (name, number) in enumerate(CARDS)
    ]  # fmt: skip
    made.seller.finished(made.seller.upload(a_csv(*rows)))
    # A shop with a shelf, so that new cards have a place to go to.
    assert made.seller.sql(SHELVED)
    with made.seller.http() as http:
        assert http.post("/api/buying/presets/standard").status_code == 200
    return made


def test_a_shoebox_is_in_stock_after_ten_clicks(browser: Browser, shop: Shop) -> None:
    clicks = 0

    def click(what: Locator) -> None:
        nonlocal clicks
        clicks += 1
        what.click()

    with a_window(browser, shop) as desk:
        desk.goto("/buying")
        file = {"name": "box.txt", "mimeType": "text/plain", "buffer": BOX.encode()}
        clicks += 1
        desk.get_by_label("A customer's collection").set_input_files(file)  # type: ignore[arg-type]
        desk.wait_for_url("**/buying/collections/*")
        desk.get_by_role("heading", name="Which Twin Shoe is this?").wait_for()
        look(desk, "which printing")
        desk.keyboard.press("2")
        desk.get_by_role("heading", name="Offer by card").wait_for()
        click(desk.get_by_role("button", name="Make an offer"))
        desk.wait_for_url("**/buying/offers/*")
        assert desk.locator(".dock dd").first.inner_text() == "28"
        look(desk, "a draft of 28 cards")
        cash = desk.locator("#sums dd").nth(1)
        before = cash.inner_text()
        desk.get_by_label("Copies of Shoe 1", exact=True).fill("2")
        desk.wait_for_function(
            "was => document.querySelectorAll('#sums dd')[1].innerText !== was", arg=before
        )
        desk.get_by_label("Copies of Shoe 1", exact=True).fill("3")
        desk.get_by_label("New customer name").fill("Karl")
        click(desk.get_by_role("button", name="Send offer"))
        click(desk.get_by_role("button", name="Link for the customer's phone"))
        phone = a_phone(browser, desk.locator(".share code").inner_text())
        click(phone.get_by_role("button", name="Accept offer"))
        phone.get_by_text("You accepted this offer.").wait_for()
        # The desk finds the answer by itself: nobody reloads it.
        desk.get_by_text("The customer accepted for").wait_for()
        look(desk, "an accepted offer")
        click(desk.get_by_role("button", name="Confirm count"))
        click(desk.get_by_role("button", name="Pay", exact=True))
        click(desk.get_by_role("button", name="Add to inventory"))
        desk.wait_for_url("**/add-cards?*")
        look(desk, "the drafts")
        click(desk.get_by_label("Select all drafts"))
        click(desk.get_by_role("button", name="Publish selected drafts"))
        desk.wait_for_url("**status=published*")
        stocked = shop.seller.sql(STOCKED)
    assert clicks <= 10
    assert sum(one["quantity"] for one in stocked) == 28
    assert {one["status"] for one in stocked} == {"published"}
    assert all(one["price"] > one["cost"] > 0 for one in stocked), stocked
    assert len({(one["box"], one["slot"]) for one in stocked if one["box"]}) == len(stocked), (
        stocked
    )

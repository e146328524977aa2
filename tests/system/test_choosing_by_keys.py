"""A counter's story in a real browser: a customer's file is dropped on *Buying*, its unsure rows are
chosen by keys beside their pictures, and the amount is there. Without chromium it is skipped.

It takes some seconds, and alone finds a key that presses nothing.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.system.processes import Server
from tests.system.test_browser import CHROMIUM, a_window, admin, sign_in

from cardsync.catalog.load_catalog import COLUMNS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt install chromium)"),
]
FILE = b"4 Twin Blade\n4 Twin Blade\n1 Nobody Knows This\n1 Lone Hawk\n"


def a_catalog(folder: Path) -> Path:
    path = folder / "catalog.csv"
    usual = {"game": "magic", "set_name": "Keys", "rarity": "Common", "language": "en"}
    cards = [("Twin Blade", "8"), ("Twin Blade", "9"), ("Lone Hawk", "3")]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(usual | {"product_name": name, "number": n} for name, n in cards)
    return path


@pytest.mark.night
def test_unsure_rows_are_chosen_by_keys(browser: Browser, server: Server, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    email = "counter@example.invalid"
    shop = admin(server, "seller", "create", "--name", "Counter", "--email", email)
    loaded = server.run("catalog", "import", str(a_catalog(tmp_path)))
    assert loaded.code == 0, loaded.err
    with a_window(browser, server) as page:
        sign_in(page, shop)
        page.goto("/buying")
        file = {"name": "box.txt", "mimeType": "text/plain", "buffer": FILE}
        page.get_by_label("A customer's collection").set_input_files(file)  # type: ignore[arg-type]
        page.wait_for_url("**/buying/collections/*")
        question = page.get_by_role("heading", name="Which Twin Blade is this?")
        expect(question).to_be_visible(timeout=60_000)
        expect(page.locator("[data-choices] img")).to_have_count(2)
        page.keyboard.press("2")
        expect(page.get_by_text("2 cards matched.")).to_be_visible()
        expect(page.get_by_role("heading", name="Nobody Knows This")).to_be_visible()
        page.keyboard.press("0")
        expect(page.get_by_role("heading", name="is this?")).to_have_count(0)
        rows = page.request.get(f"/api/{page.url.split('/', 3)[3].split('?')[0]}/rows").json()
        numbers = [(row["name"], row["how"], row["left_out"]) for row in rows["rows"]]
        assert numbers == [
            ("Twin Blade", "chosen", False),
            ("Twin Blade", "chosen", False),
            ("Nobody Knows This", None, True),
            ("Lone Hawk", "name", False),
        ]

"""`make screenshots`: a server with a small shop, its pages in Debian's chromium, and pictures of
them in docs/screenshots, which README.md and docs/use show.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
TARGET = HERE.parent / "docs" / "screenshots"
MOST_BYTES = 150_000


def _shelve(page: Any, cards: list[int]) -> None:
    """Put some cards into boxes, so that the shelves are not empty."""
    headers = {"X-CSRF-Token": page.request.get("/api/session").json()["csrf_token"]}
    for n, card in enumerate(cards):
        place = {"card_id": card, "box": 1 + n // 2, "slot": 1 + n % 2, "quantity": 1}
        page.request.post("/api/shelves/put", data=place, headers=headers)


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs chromium (Debian: apt install chromium)")
    os.environ.setdefault("CARDSYNC_TEST_DIR", tempfile.mkdtemp(prefix="cardsync-screenshots-"))
    Path(os.environ["CARDSYNC_TEST_DIR"]).chmod(0o755)
    from playwright.sync_api import sync_playwright
    from tests.system.processes import Server, a_folder
    from tests.system.shop_with_pages import a_shop_with_pages, recommended

    with a_folder() as folder, Server(folder) as server, sync_playwright() as playwright:
        shop = a_shop_with_pages(server, hostile=False)
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.getuid() == 0 else []
        )
        page = browser.new_page(
            base_url=server.url, viewport={"width": 1280, "height": 720}, color_scheme="light"
        )
        page.goto("/sign-in")
        page.get_by_label("Email").fill(shop.email)
        page.get_by_label("Password").fill(shop.password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/today")
        # The card of the picture is one whose price the rule changes.
        query = "/api/cards?search=game:magic price<160&sort=price&direction=desc"
        moved = [
            card["id"]
            for card in page.request.get(query).json()["cards"]
            if card["number"] and card["price"] != card["target_price"]
        ]
        rule = page.request.get("/api/pricing/rules").json()["rules"][0]["id"]
        _shelve(page, moved[:4])
        recommended(shop)
        for name, path in (
            ("today", "/today"),
            ("cards", "/cards?search=game:magic&sort=price&direction=desc"),
            ("cards-dark", "/cards?search=game:magic&sort=price&direction=desc"),
            ("card", f"/cards/{moved[0]}"),
            ("orders", "/orders"),
            ("pull", f"/pulls/{shop.session_id}"),
            ("pricing", f"/pricing/rules/{rule}"),
            ("suggestions", "/recommendations"),
            ("reviews", "/pricing/reviews"),
            ("shelves", "/shelves"),
            ("sales", "/sales?by=day"),
            ("labels", "/print/labels"),
            ("sync", "/sync"),
        ):
            page.emulate_media(color_scheme="dark" if name.endswith("-dark") else "light")
            page.goto(path)
            page.wait_for_load_state("networkidle")
            picture = TARGET / f"{name}.png"
            page.screenshot(path=picture)
            # A picture of 256 colors has a third of the bytes.
            Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)
            size = picture.stat().st_size
            print(f"{picture.relative_to(HERE.parent)}: {size // 1000} KB")
            if size > MOST_BYTES:
                sys.exit(f"{picture.name} is larger than {MOST_BYTES // 1000} KB")
        browser.close()
    shutil.rmtree(os.environ["CARDSYNC_TEST_DIR"], ignore_errors=True)


if __name__ == "__main__":
    main()

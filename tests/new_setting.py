"""The story of a setting of an account that is declared in one line before the program is imported:
it is in every door. `test_new_setting.py` runs it in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys

from sqlalchemy.orm import Mapped

from cardsync.access import declared_settings as declared
from cardsync.platform.declared_fields import Field

declared.SettingsOfAccount.wrapping = declared.setting(
    Field(
        options={"paper": "Plain paper", "foam": "Soft foam"},
        section="shop",
        label="Wrapping",
        hint="What goes around a card.",
        api="The stuff around a card",
        feed="stuff around cards",
    ),
    "paper",
)
declared.SettingsOfAccount.__annotations__["wrapping"] = Mapped[str]

import conftest  # noqa: E402
from browsers import Browser, signed_in  # noqa: E402
from builders import SellerBuilder, one_line  # noqa: E402
from cardsync.platform.database.migrate import keep_seal  # noqa: E402
from cardsync.platform.logs import setup_logging  # noqa: E402
from cardsync.platform.secret import seal  # noqa: E402
from cardsync.platform.settings import Settings  # noqa: E402
from cardsync.shop.accounts import sellers  # noqa: E402
from cardsync.web.openapi import document  # noqa: E402

ACCOUNT = "/api/account"


async def newest(browser: Browser) -> dict:
    return (await browser.get("/api/v1/agent/activity")).json()["activity"][0]


async def story(settings: Settings) -> None:
    async with conftest._serving(settings) as service:
        seller = await SellerBuilder(service)()
        browser = await signed_in(seller)
        # openapi.json in git does not know the setting.
        browser.http.event_hooks = {"response": [one_line]}

        async def stored() -> str:
            return (await browser.get(ACCOUNT)).json()["wrapping"]

        assert await stored() == "paper"
        shapes = json.loads(document(service.app))["components"]["schemas"]
        for name in ("AccountSettings", "AccountChange"):
            assert shapes[name]["properties"]["wrapping"] == {
                "type": "string",
                "enum": ["paper", "foam"],
                "description": "The stuff around a card",
            }
        answer = await browser.send("PATCH", ACCOUNT, json={"wrapping": "silk"})
        assert answer.status_code == 422
        assert "wrapping" in answer.json()["error"]
        answer = await browser.send("PATCH", ACCOUNT, json={"wrapping": "foam"})
        assert answer.json()["wrapping"] == "foam"
        entry = await newest(browser)
        assert entry["summary"] == "wrapping=foam"
        assert "Stuff around cards: foam" in (await browser.get("/activity")).text
        answer = await browser.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert answer.status_code == 200, answer.text
        assert await stored() == "paper"

        page = await browser.get("/settings/shop")
        for text in ("Wrapping", "What goes around a card.", "Plain paper", "Soft foam"):
            assert text in page.text
        changed = {"was:wrapping": "paper", "wrapping": "foam"}
        assert (await browser.form("/settings/shop", **changed)).status_code == 303
        assert await stored() == "foam"

        await seller.set(wrapping="paper")
        assert await stored() == "paper"
        async with service.database.tenant(seller.id) as session:
            assert (await sellers.show_seller(session, seller.id))["wrapping"] == "paper"


if __name__ == "__main__":
    setup_logging("warning", "json")
    given = Settings(slab_rows=50, **dict.fromkeys(conftest.LIMITS, "1000000/min"))
    keep_seal(str(given.database_url), seal(given))
    asyncio.run(story(given))
    sys.stdout.write("told\n")

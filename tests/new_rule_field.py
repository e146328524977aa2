"""The story of a field of a rule that is declared in one line of `prices/engine/rules.py`: it is
in every door. `test_new_rule_field.py` runs it in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import sys
from html import unescape

RULES = "cardsync.prices.engine.rules"
LINE = """
    surcharge: Annotated[
        int | None,
        Field(
            1, 99_999, money=True, guard=False, uses=("costs",), section="limits",
            label="Surcharge in dollars", line="Add $… to each price.",
            hint="Leave blank to add nothing.", says="Adds $… to each price.",
            api="Added to each price, in USD",
        ),
    ] = None
    guard: Annotated["""


def declare() -> None:
    """Import the module of rules as if its source had the line."""
    spec = importlib.util.find_spec(RULES)
    source = spec.loader.get_source(RULES)
    assert source.count("\n    guard: Annotated[") == 1
    module = importlib.util.module_from_spec(spec)
    sys.modules[RULES] = module
    exec(source.replace("\n    guard: Annotated[", LINE), vars(module))
    sys.modules["cardsync.prices.engine"].rules = module


declare()

import conftest  # noqa: E402
from browsers import Browser, signed_in  # noqa: E402
from builders import SellerBuilder, one_line  # noqa: E402
from cardsync.platform.database.migrate import keep_seal  # noqa: E402
from cardsync.platform.logs import setup_logging  # noqa: E402
from cardsync.platform.secret import seal  # noqa: E402
from cardsync.platform.settings import Settings  # noqa: E402
from cardsync.prices.engine.rules import Rule  # noqa: E402
from cardsync.prices.inputs.rule_file import RuleSet, read_rule_set, rule_set_text  # noqa: E402
from cardsync.prices.plans.asked_data import OF_RULES  # noqa: E402
from cardsync.web.openapi import document  # noqa: E402

PATH = "/api/pricing/rules"
SENTENCE = "Adds $0.50 to each price."


async def newest(browser: Browser) -> dict:
    return (await browser.get("/api/v1/agent/activity")).json()["activity"][0]


async def refused(browser: Browser, **fields: object) -> str:
    answer = await browser.send("POST", PATH, json={"name": "No", **fields})
    assert answer.status_code == 422, answer.text
    return answer.json()["error"]


async def story(settings: Settings) -> None:
    rules = [Rule(7, "Mine", 1, surcharge=5_000)]
    assert list(read_rule_set(rule_set_text(RuleSet(rules))).rules) == rules
    assert OF_RULES["surcharge"] == ("costs",)
    async with conftest._serving(settings) as service:
        browser = await signed_in(await SellerBuilder(service)())
        # openapi.json in git does not know the field.
        browser.http.event_hooks = {"response": [one_line]}
        shapes = json.loads(document(service.app))["components"]["schemas"]
        for name in ("PriceFields", "RuleFields", "PricingRuleShown", "SavedRule"):
            shape = shapes[name]["properties"]["surcharge"]
            assert shape["description"] == "Added to each price, in USD"

        assert "surcharge: must be between 0.00" in await refused(browser, surcharge="0")
        assert "guards only set limits" in await refused(
            browser, surcharge="0.50", floor="1", guard=True
        )
        body = {"name": "Mine", "surcharge": "0.50"}
        rule = (await browser.send("POST", PATH, json=body)).json()
        assert rule["surcharge"] == "0.50"
        address, own = f"/pricing/rules/{rule['id']}", f"{PATH}/{rule['id']}"

        async def stored() -> str | None:
            return (await browser.get(own)).json()["surcharge"]

        html = (await browser.get(address)).text
        page = unescape(html)
        for text in ("Surcharge in dollars", "Leave blank to add nothing.", SENTENCE):
            assert text in page, text
        guard = (await browser.get("/pricing/rules/new?guard=1")).text
        assert "Surcharge" not in guard

        was = unescape(re.search(r'name="was" value="([^"]*)"', html)[1])
        form = {"was": was, "face": "form", "action": "save", "name": "Mine", "query": ""}
        form |= {"price_source": "market", "rounding": "cent", "fallback_sources": "market"}
        answer = await browser.form(address, **form, surcharge="0.75")
        assert answer.status_code == 303, answer.text
        assert await stored() == "0.75"
        entry = await newest(browser)
        assert (entry["before"], entry["after"]) == (
            {"surcharge": "0.50"},
            {"surcharge": "0.75"},
        )
        answer = await browser.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert answer.status_code == 200, answer.text
        assert await stored() == "0.50"


if __name__ == "__main__":
    setup_logging("warning", "json")
    given = Settings(slab_rows=50, **dict.fromkeys(conftest.LIMITS, "1000000/min"))
    keep_seal(str(given.database_url), seal(given))
    asyncio.run(story(given))
    sys.stdout.write("told\n")

"""Repairs in a real Chromium against the real server: a reading step goes on with one, and it
counts once its post-condition held; a step that changes something waits for a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.marketplace import truth
from tests.marketplace.pages import unmarked
from tests.system.agent_pages import Site, a_file, click, goto, html, step
from tests.system.browser_shops import PACKS
from tests.system.processes import Seller, Server
from tests.system.workflow_runner import Runner, a_browser, chromium

import schedule
from cardsync.agents.repairs.propose_selector import Gone, LostElement, propose
from cardsync_agent import cli
from cardsync_agent.browser import page_snippet
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import ElementLost, StepNotDone
from cardsync_agent.client import Client
from cardsync_agent.kept_repairs import KeptRepairs
from cardsync_agent.repairs import Repairs
from cardsync_agent.workflow import pack
from cardsync_agent.workflow.locators import description
from cardsync_agent.workflow.pack import Pack
from cardsync_agent.workflow.step_repairs import StepRepairs

# Real browsers take their time: the night runs them.
pytestmark = [
    pytest.mark.night,
    schedule.whole_night,
    pytest.mark.skipif(chromium is None, reason="there is no browser"),
]

EXPORT = {
    "locators": [{"role": "button", "name": "Export CSV"}, {"css": "#export"}],
    "looks": {"tag": "button", "text": "Export CSV", "id": "export", "classes": ["btn"]},
}
# The button has another text and no id any more; beside it is another one.
MOVED = (
    "<main><h1>Pricing</h1><p class=buyer>Ada Lovelace, ada@example.com</p>"
    '<button class="btn" data-testid="import-pricing">Import CSV</button>'
    '<button class="btn" data-testid="export" {}>Export as CSV</button></main>'
)
PRESSED = "onclick=\"document.body.insertAdjacentHTML('beforeend', '<i id=done>Done</i>')\""
PARTS = {"export": EXPORT, "done": {"css": "#done"}, "buyer": {"css": ".buyer"}}


@pytest.fixture(scope="module")
def accounts(server: Server) -> Iterator[Seller]:
    """Made before the browser starts: its event loop would be in the way."""
    return iter([server.seller() for _ in range(8)])


@pytest.fixture(scope="module")
def sellers(
    accounts: Iterator[Seller], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SellersBrowser]:
    browser = a_browser(tmp_path_factory.mktemp("home") / "browser")
    yield browser
    browser.quit()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


class Shop:
    def __init__(self, seller: Seller, runner: Runner, home: Path) -> None:
        self.seller, self.runner, self.home = seller, runner, home
        home.mkdir(exist_ok=True)
        self.kept = KeptRepairs(home)

    def run(self, its: Pack) -> None:
        repairs = Repairs(self.home, Client(self.seller.server.url, self.seller.api_key))
        self.runner.steps.clear()
        self.runner.run(its, repairs=StepRepairs(its, repairs, self.kept))

    def heals(self) -> list[dict[str, Any]]:
        return list(
            self.seller.sql(
                "SELECT outcome, screenshot_bytes FROM workflow_heal"
                " WHERE seller_id = %(seller)s ORDER BY id"
            )
        )

    def corrections(self) -> list[tuple[str, int]]:
        rows = self.seller.sql(
            "SELECT state, failures FROM workflow_correction"
            " WHERE seller_id = %(seller)s ORDER BY id"
        )
        return [(row["state"], row["failures"]) for row in rows]

    def states(self) -> list[str]:
        return [one.state for one in self.kept.all()]

    def command(self, *arguments: str) -> int:
        return cli.main(["repairs", "--folder", str(self.home.parent), *arguments])


@pytest.fixture
def shop(accounts: Iterator[Seller], sellers: SellersBrowser, site: Site, tmp_path: Path) -> Shop:
    home = tmp_path / ".cardsync-agent"
    return Shop(next(accounts), Runner(sellers, site, tmp_path), home)


def pressing(shop: Shop, *, changes: bool) -> Pack:
    go = click("export", changes=changes, then={"visible": "done", "within": 1})
    return shop.runner.pack(PARTS, goto("/"), go, masked=["buyer"])


def test_a_reading_step_goes_on_with_a_repair_and_uses_it_again(shop: Shop) -> None:
    shop.runner.site.pages |= {
        "/": html(MOVED.format("onclick=\"location='/x.csv'\"")), "/x.csv": a_file(),
    }  # fmt: skip
    get = step("download", "get", {"file": "it"}, element="export", file="it")
    its = shop.runner.pack(PARTS, goto("/"), get, masked=["buyer"])
    shop.run(its)
    assert (shop.corrections(), shop.states()) == ([("verified", 0)], ["used"])
    assert shop.runner.steps[-1].found_by == 'repair "button[data-testid="export"]"'
    assert [(heal["outcome"], heal["screenshot_bytes"] > 0) for heal in shop.heals()] == [
        ("proposed", True)
    ]
    shop.run(its)
    assert len(shop.heals()) == 1
    assert str(shop.runner.steps[-1].found_by).startswith("repair 1 ")


def test_a_repair_whose_post_condition_fails_counts_as_failed(shop: Shop) -> None:
    shop.runner.site.pages["/"] = html(MOVED.format(""))
    with pytest.raises(StepNotDone, match="done is not there, 1 s after press_export"):
        shop.run(pressing(shop, changes=False))
    assert (shop.corrections(), shop.states()) == ([("proposed", 1)], ["failed"])


def test_a_step_that_changes_something_waits_for_a_person(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.runner.site.pages["/"] = html(MOVED.format(PRESSED))
    its = pressing(shop, changes=True)
    with pytest.raises(
        ElementLost, match="shows it; if it is right add `--confirm 1`, else `--wrong 1`"
    ):
        shop.run(its)
    assert (shop.states(), shop.corrections(), shop.runner.changes) == (
        ["proposed"], [("proposed", 0)], [],
    )  # fmt: skip
    assert shop.command() == 0
    assert "1  proposed: export_inventory, press_export: export would be" in capsys.readouterr().out
    assert shop.command("--confirm", "1") == 0
    shop.run(its)
    assert (shop.states(), shop.corrections()) == (["confirmed"], [("verified", 0)])
    assert shop.runner.changes == ["press_export"]
    shop.run(its)
    assert (len(shop.heals()), shop.states()) == (1, ["confirmed"])


def test_a_confirmed_repair_that_shows_another_text_is_confirmed_anew(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.runner.site.pages["/"] = html(MOVED.format(PRESSED))
    its = pressing(shop, changes=True)
    for now in ("Export 20 rows as CSV", "Export 3 rows to the shop"):
        moved = MOVED.format(PRESSED).replace("Export as CSV", now)
        shop.runner.site.pages["/"] = html(moved)
        with pytest.raises(ElementLost, match="add `--confirm 1`"):
            shop.run(its)
        assert (shop.states(), shop.runner.changes) == (["proposed"], [])
        shop.command()
        assert f'shows "{now}"' in capsys.readouterr().out
        assert shop.command("--confirm", "1") == 0
        shop.runner.site.pages["/"] = html(moved.replace("20", "21"))
        shop.run(its)
        assert shop.runner.changes == ["press_export"]
        shop.runner.changes.clear()


def test_what_a_person_called_wrong_is_never_used_again(shop: Shop) -> None:
    shop.runner.site.pages["/"] = html(MOVED.format(PRESSED))
    for changes in (True, False):
        its = pressing(shop, changes=changes)
        with pytest.raises(ElementLost):
            shop.run(its)
        assert shop.command("--wrong", "1") == 0
        with pytest.raises(ElementLost, match=r"is one that you called wrong|no repair"):
            shop.run(its)
    assert shop.states() == ["wrong"]
    assert shop.corrections()[0][1] >= 2
    assert shop.runner.changes == []
    assert shop.command("--wrong", "7") == 2


def test_a_button_that_is_gone_is_asked_about_with_a_picture(shop: Shop) -> None:
    shop.runner.site.pages["/"] = html("<main><h1>Pricing</h1><p>Not found.</p></main>")
    with pytest.raises(ElementLost, match="no repair"):
        shop.run(pressing(shop, changes=True))
    [heal] = shop.heals()
    assert heal["outcome"] != "proposed"
    assert heal["screenshot_bytes"] > 0


MENUS = {
    "details": "<details><summary>More</summary>{}</details>",
    "button": '<button type=button aria-haspopup=true onclick="this.nextElementSibling.hidden'
    ' = false">More</button><div hidden>{}</div>',
}


@pytest.mark.parametrize("menu", MENUS)
def test_a_button_that_is_in_a_menu_now_is_found_there(shop: Shop, menu: str) -> None:
    inside = MOVED.replace("<button", MENUS[menu].partition("{")[0] + "<button", 1)
    shop.runner.site.pages["/"] = html(
        inside.format(PRESSED).replace("</main>", MENUS[menu].partition("}")[2] + "</main>")
    )
    shop.run(pressing(shop, changes=False))
    assert (shop.corrections(), shop.states()) == ([("verified", 0)], ["used"])


@pytest.mark.parametrize("design", [2, 3])
def test_a_page_without_its_texts_says_enough_to_find_what_a_step_uses(
    sellers: SellersBrowser, design: int
) -> None:
    """The corpus of tests/core has whole pages; the server gets what the agent leaves of them."""
    page = sellers.page()
    its = pack.read((PACKS / "simulated" / "pack.json").read_bytes())
    used = [
        (workflow, step.name, step.element)
        for workflow, flow in its.workflows.items()
        for step in flow.steps
        if hasattr(step, "element")
    ]
    assert len(used) > 20
    found: dict[tuple[str, str], list[str | None]] = {}
    for workflow, name, lost in used:
        whole = truth.page(lost, design)
        page.set_content(whole)
        element = its.elements[lost]
        part = page_snippet.snippet(page, its, lost, element)
        asked = LostElement(
            description(element), name, workflow=workflow, page_url=truth.address(lost)
        )
        for text in (whole, part):
            repair = propose(unmarked(text), asked)
            mark = None
            if not isinstance(repair, Gone):
                mark = page.locator(repair.selector).get_attribute("mark")
            found.setdefault((workflow, name), []).append(mark)
    assert all(part == whole for whole, part in found.values()), found
    assert {mark for _, mark in found.values()} > {"export_pricing", "publish_button"}

"""The agent's repairs against the real server: recorded pages whose buttons moved, were renamed,
nested anew or taken away.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.system.processes import Seller, Server
from tests.system.test_agent_cycle import Shop, agent_env

from builders import a_csv, a_row
from cardsync_agent.client import Client, Lost
from cardsync_agent.repairs import NotFound, Repairs

OLD = "button#export"
BUTTON = '<button class="btn" {}>Export CSV</button>'
OTHER = '<button class="btn" data-testid="import-pricing">Import CSV</button>'
# New forms of `<div class="toolbar"><button id="export">Export CSV</button> …`.
PAGES = {
    "moved": f"<main><h1>Pricing</h1>{OTHER}<footer>{BUTTON.format('data-testid=export')}</footer></main>",
    "renamed": f'<main><div class="toolbar">{BUTTON.format("name=export")}{OTHER}</div></main>',
    "nested": f"<main><div><section><p>{OTHER}</p><span>{BUTTON.format('data-testid=export')}</span>"
    "</section></div></main>",
}
GONE = "<main><h1>Pricing</h1><p>Not found.</p></main>"


def looking_at(page: str) -> Callable[[str], str]:
    def look(selector: str) -> str:
        found = LexborHTMLParser(page).css_first(selector)
        if found is None:
            raise NotFound(f"{selector} finds nothing")
        return found.text()

    return look


def repairs(seller: Seller, home: Path, url: str | None = None) -> Repairs:
    return Repairs(home, Client(url or seller.server.url, seller.api_key))


def found(its: Repairs, page: str, look: Callable[[str], str] | None = None) -> str:
    lost = Lost("pricing", "export_inventory", OLD, "https://marketplace.invalid/pricing", page)
    return its.find(look or looking_at(page), lambda: lost, OLD)


def corrections(seller: Seller) -> list[tuple[str, int]]:
    rows = seller.sql(
        "SELECT state, failures FROM workflow_correction WHERE seller_id = %(seller)s ORDER BY id"
    )
    return [(row["state"], row["failures"]) for row in rows]


@pytest.mark.first(1)
@pytest.mark.parametrize("change", PAGES)
def test_a_button_that_is_elsewhere_is_found_and_confirmed(
    server: Server, tmp_path: Path, change: str
) -> None:
    seller = server.seller()
    its = repairs(seller, tmp_path)
    assert found(its, PAGES[change]) == "Export CSV"
    assert (corrections(seller), its.waiting()) == ([("verified", 0)], [])
    assert found(its, PAGES[change]) == "Export CSV"
    assert corrections(seller) == [("verified", 0)]


@pytest.mark.night
def test_a_button_that_is_gone_is_told_as_gone(server: Server, tmp_path: Path) -> None:
    seller = server.seller()
    with pytest.raises(NotFound, match=r"button#export finds nothing; no repair: "):
        found(repairs(seller, tmp_path), GONE)
    assert corrections(seller) == []


@pytest.mark.night
def test_a_repair_that_does_not_work_is_told_and_never_proposed_after_three(
    server: Server, tmp_path: Path
) -> None:
    seller = server.seller()
    its = repairs(seller, tmp_path)
    for failures in (1, 2, 3):
        with pytest.raises(NotFound, match="the repair failed too"):
            found(its, PAGES["moved"], looking_at(GONE))
        assert corrections(seller)[0][1] == failures
    with pytest.raises(NotFound, match="no repair"):
        found(its, PAGES["moved"])


@pytest.mark.night
def test_what_a_repair_came_to_outlives_an_outage(server: Server, tmp_path: Path) -> None:
    seller = server.seller()
    correction = repairs(seller, tmp_path)._client.heal(
        Lost("pricing", "export_inventory", OLD, "https://marketplace.invalid/", PAGES["moved"])
    )
    away = repairs(seller, tmp_path, "http://127.0.0.1:9")
    away._tell({"correction_id": correction.correction_id, "selector": correction.selector})
    assert (len(away.waiting()), corrections(seller)) == (1, [("proposed", 0)])
    its = repairs(seller, tmp_path)
    assert its.send_waiting() == 0
    assert (its.waiting(), corrections(seller)) == ([], [("verified", 0)])


# An adapter that presses the button of a recorded page before it takes a file of the folder.
PRESSING = """
import sys
from pathlib import Path
from selectolax.lexbor import LexborHTMLParser
from cardsync_agent import cli
from cardsync_agent.client import Lost
from cardsync_agent.marketplace.folder import FolderMarketplace
from cardsync_agent.repairs import NotFound

def use_repairs(self, repairs):
    self.repairs = repairs

def export_inventory(self, spool, known):
    page = Path(sys.argv[1]).read_text()
    def look(selector):
        if LexborHTMLParser(page).css_first(selector) is None:
            raise NotFound(f"{selector} finds nothing")
    workflow = Path(sys.argv[1]).parent.parent.name  # what three sellers verified holds for all
    lost = Lost(workflow, "export_inventory", "button#export", "https://m.invalid/", page)
    self.repairs.find(look, lambda: lost, "button#export")
    return take(self, spool, known)

take = FolderMarketplace.export_inventory
FolderMarketplace.use_repairs = use_repairs
FolderMarketplace.export_inventory = export_inventory
sys.exit(cli.main(sys.argv[2:]))
"""


def run(shop: Shop, page: str) -> subprocess.CompletedProcess[str]:
    recorded = shop.folder / "page.html"
    recorded.write_text(page)
    command = [sys.executable, "-c", PRESSING, str(recorded), "run", *shop.arguments()]
    return subprocess.run(
        [*command, "--once", "--request", "pricing"],
        env=agent_env(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Shop:
    made = Shop(server.seller(), tmp_path / "shop")
    (made.folder / "inbox").mkdir(parents=True)
    made.put(a_csv(*(a_row(n) for n in range(1, 4))))
    return made


def test_the_agents_step_goes_on_with_a_repair(shop: Shop) -> None:
    ended = run(shop, PAGES["moved"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [upload["state"] for upload in shop.uploads()] == ["done"]
    assert corrections(shop.seller) == [("verified", 0)]


@pytest.mark.night
def test_the_agents_step_fails_with_the_reason_and_what_waits_is_sent_at_the_next_start(
    shop: Shop,
) -> None:
    ended = run(shop, GONE)
    assert ended.returncode == 1
    assert "button#export finds nothing; no repair: no element" in ended.stdout + ended.stderr
    assert (shop.uploads(), corrections(shop.seller)) == ([], [])
    home = shop.folder / ".cardsync-agent"
    correction = repairs(shop.seller, home)._client.heal(
        Lost(shop.folder.parent.name, "export_inventory", OLD, "https://m.invalid/", PAGES["moved"])
    )
    away = repairs(shop.seller, home, "http://127.0.0.1:9")
    away._tell({"correction_id": correction.correction_id, "selector": correction.selector})
    assert corrections(shop.seller) == [("proposed", 0)]
    assert run(shop, PAGES["moved"]).returncode == 0
    assert (away.waiting(), corrections(shop.seller)) == ([], [("verified", 0)])

"""`cardsync-agent workflow test` on recorded pages, and the recording of a workflow, in a real
Chromium.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.marketplace.server import Server, started
from tests.system.agent_pages import CSV, Site, a_file, a_pack, click, goto, html, redirect, step
from tests.system.browser_shops import PACKS, sign_in_at
from tests.system.workflow_runner import QUICK, Runner, a_browser, chromium

import schedule
from cardsync_agent import cli, clock
from cardsync_agent.browser.find_browser import VARIABLE
from cardsync_agent.browser.your_turn import Turns
from cardsync_agent.workflow import pack
from cardsync_agent.workflow.perform import Outcome, Tools, perform
from cardsync_agent.workflow.record import QUESTION, Recorder
from cardsync_agent.workflow.recordings import OtherMarketplace, Recorded, added, completed

# Real browsers take their time: the night runs them.
pytestmark = [
    pytest.mark.night,
    schedule.whole_night,
    pytest.mark.skipif(chromium is None, reason="there is no browser"),
]

SITE = "https://seller.invalid"
ELEMENTS = {
    "prices": {"text": "Prices"},
    "export": [{"test_id": "export"}, {"role": "button", "name": "Export"}],
    "publish": {"css": "#publish"},
    "published": {"role": "heading", "name": "Published"},
    "file": {"css": "input[type=file]"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pack and recorded pages, whose scripts are not there any more."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, body in {
        "home": f'<a href="{SITE}/prices?page=1">Prices</a>',
        "prices": "<button>Export</button><input type=file><button id=publish>Publish</button>",
        "published": "<h1>Published</h1>",
    }.items():
        (pages / f"{name}.html").write_bytes(html(body).body)
    (pages / "export.csv").write_bytes(CSV)
    index = {
        "pages": {
            "/": "home.html", "/prices": "prices.html", "/prices?now": "published.html",
            "/export": {"file": "export.csv", "type": "text/csv", "attachment": True},
        },
        "clicks": {"/prices": {"#publish": "/prices?now", "button": "/export"}},
        "files": {"changed": "export.csv"},
    }  # fmt: skip
    (pages / "index.json").write_text(json.dumps(index))
    return tmp_path


def write(folder: Path, *steps: dict[str, Any], **elements: Any) -> Path:
    made = a_pack(SITE, ELEMENTS | elements, [goto("/"), *steps])
    (folder / "pack.json").write_bytes(msgspec.json.encode(made))
    return folder / "pack.json"


def test_a_pack_is_tried_on_recorded_pages(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(chromium))
    steps = (
        click("prices", then={"url": "/prices"}),
        step("download", "get", {"file": "it", "header": ["TCGplayer Id"]}, element="export",
             file="it"),
        step("upload", "put", {"visible": "publish"}, element="file", file="changed"),
    )  # fmt: skip
    publish = click("publish", changes=True, then={"visible": "published", "within": 60})
    assert cli.main(["workflow", "test", str(write(folder, *steps, publish))]) == 0
    lines = [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "export_inventory  open  goto: post-condition holds",
        'export_inventory  press_prices  click: found by text "Prices"; post-condition holds',
        'export_inventory  get  download: found by role button "Export"; post-condition holds',
        'export_inventory  put  upload: found by css "input[type=file]"; post-condition holds',
        'export_inventory  press_publish  click: found by css "#publish"; post-condition holds',
        "1 of 1 workflows hold",
    ]
    wrong = write(folder, click("prices", then={"visible": "published", "within": 60}))
    assert cli.main(["workflow", "test", str(wrong), "--pages", str(folder / "pages")]) == 1
    said = capsys.readouterr().out
    assert "FAILED: published is not there, 5 s after press_prices" in said
    assert "0 of 1 workflows hold" in said


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (None, "has no index.json"),
        ('{"pages": {"/": "../pack.json"}}', "has no file ../pack.json"),
        ('{"pages": {"/": "lost.html"}}', "has no file lost.html"),
        ('{"pages": [', "cannot be read"),
    ],
)
def test_a_folder_that_is_none_of_recorded_pages_is_wrong_usage(
    folder: Path,
    index: str | None,
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, str(chromium))
    file = folder / "pages" / "index.json"
    file.unlink() if index is None else file.write_text(index)
    assert cli.main(["workflow", "test", str(write(folder))]) == 2
    assert reason in capsys.readouterr().err


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


TYPED = (
    "const t = document.querySelector('#t'); t.value = 'secret title';"
    " t.dispatchEvent(new Event('change', {bubbles: true}))"
)
CHOSEN = TYPED.replace("#t", "#m").replace("secret title", "Pokemon")
ACTS = (
    ("document.querySelector('a').click()", "y"),
    (CHOSEN, "y"),
    (TYPED, "y"),
    ("document.querySelector('#help').click()", "n"),
    ("document.querySelector('form button').click()", ""),
    ("document.querySelector('#get').click()", "y"),
    ("document.querySelector('#publish').click()", "c"),
    ("document.querySelector('#home').click()", "ce"),
)  # fmt: skip


def a_person(acts: Any, page: Callable[[], Any]) -> tuple[Callable[[str], str], list[str]]:
    """Someone who does one act after the other, and answers the questions about each."""
    left, asked, answers = list(acts), [], []

    def act() -> None:
        if left:
            script, answer = left.pop(0)
            answers.append(answer)
            page().evaluate(f"() => setTimeout(() => {{ {script} }}, 150)")

    def ask(question: str) -> str:
        asked.append(question)
        if question.startswith("name of the value that is chosen: fixed, month, date"):
            return "month" if question in asked[:-1] else "moon"
        if question != QUESTION:
            return ""
        answer = answers.pop(0)
        act()
        return answer

    act()
    return ask, asked


def test_a_workflow_is_recorded_and_can_be_performed(site: Site, tmp_path: Path) -> None:
    site.pages |= {
        "/": html("<h1>Home</h1><a href=/orders/1234>Orders</a>"),
        "/orders/1234": html(
            "<h1>Orders</h1><label>Title <input id=t></label><button id=help>?</button>"
            "<select id=m aria-label=Month><option>Magic<option>Pokemon</select>"
            "<form action=/found><button>Find</button></form>"
        ),
        "/found": html(
            "<h1>Found</h1><button id=get onclick=\"location='/x.csv'\">Get</button>"
            "<button id=publish onclick=\"this.insertAdjacentHTML('afterend',"
            "'<p role=status>Published 3 rows</p>')\">Publish</button><a id=home href=/>Back</a>"
        ),
        "/x.csv": a_file(),
    }  # fmt: skip
    browser = a_browser(tmp_path / "browser")
    said: list[str] = []
    try:
        ask: list[Callable[[str], str]] = []

        def write(text: str) -> None:
            said.append(text)
            if text.startswith("click through"):
                ask.append(a_person(ACTS, browser.page)[0])

        recorder = Recorder(
            browser, site.origin, "sales_report", lambda question: ask[0](question), write
        )
        recorded = recorder.record("/")
        made = added(None, "tests", site.origin, "sales_report", recorded)
        browser.release()
        assert [(one.name, type(one).__name__) for one in recorded.steps] == [
            ("open", "Goto"), ("click_orders_link", "Click"), ("choose_month", "Choose"),
            ("fill_title", "Fill"),
            ("click_find_button", "Click"), ("download_get_button", "Download"),
            ("click_publish_button", "Click"), ("click_back_link", "Click"),
        ]  # fmt: skip
        steps = {one.name: one for one in recorded.steps}
        assert steps["click_orders_link"].then == pack.Condition(
            url="/orders/*", visible="orders_heading"
        )
        assert steps["download_get_button"].then.header == ("TCGplayer Id", "Total Quantity")
        changing = [name for name, one in steps.items() if one.changes]
        assert changing == ["click_publish_button", "click_back_link"]
        assert made.elements["get_button"].locators[:2] == (
            pack.Locator(role="button", name="Get"), pack.Locator(text="Get"),
        )  # fmt: skip
        assert made.elements["get_button"].looks.tag == "button"
        assert "secret title" not in msgspec.json.encode(made).decode() + "".join(said)
        runner = Runner(browser, site, tmp_path)
        outcome = runner.run(made, {"month": "Pokemon", "date_from": "Pikachu"})
        assert outcome.file("sales_report").read_bytes() == CSV
        assert "the sync app has no moon here" in said
        assert list(pack.misnamed(made)) == []
    finally:
        browser.quit()


FILE = "TCGplayer Id,Add to Quantity,TCG Marketplace Price\r\n"
GIVEN = """
const file = document.querySelector('#price-file'), data = new DataTransfer();
data.items.add(new File([`CONTENT`], 'prices.csv', {type: 'text/csv'}));
file.files = data.files; file.dispatchEvent(new Event('change', {bubbles: true}))
"""
POINTED = (
    "document.querySelector('CSS').dispatchEvent(new MouseEvent('click',"
    " {bubbles: true, cancelable: true, altKey: true, shiftKey: MASK}))"
)
UPLOAD, REPORT, PUBLISH = "#upload-button", "#download-report", "#publish-button"


def pointed(css: str, *, mask: bool = False) -> str:
    return POINTED.replace("CSS", css).replace("MASK", str(mask).lower())


def pressed(css: str) -> str:
    return f"document.querySelector('{css}').click()"


class Person:
    """Does one act after the other in the page, and answers what is asked about each."""

    def __init__(self, acts: list[tuple[str, str]], page: Callable[[], Any]) -> None:
        self.left, self.answer, self.page = acts, "", page
        self.said: list[str] = []

    def act(self) -> None:
        if self.left:
            script, self.answer = self.left.pop(0)
            self.page().evaluate(f"() => setTimeout(() => {{ {script} }}, 150)")

    def ask(self, question: str) -> str:
        if question.startswith("name of"):
            return ""
        answer = self.answer
        self.act()
        return answer

    def write(self, text: str) -> None:
        self.said.append(text)
        if text.startswith(("click through", "only that page")):
            self.act()


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Server]:
    made = started(port=0, design=1, rows=40, orders=12, state=None)
    yield made
    made.stop()


def test_an_import_with_its_checks_can_be_recorded_and_is_performed(
    market: Server, tmp_path: Path
) -> None:
    """The pack that knows nothing of its marketplace's pages imports once they were shown to it."""
    before = pack.read((PACKS / "tcgplayer" / "pack.json").read_bytes())
    before = msgspec.structs.replace(before, origins=(market.address,), version=7)
    sign_in_at(str(tmp_path / "browser"), market.address)
    browser = a_browser(tmp_path / "browser")

    def record(name: str, start: str, *acts: tuple[str, str]) -> pack.Pack:
        person = Person(list(acts), browser.page)
        recorder = Recorder(browser, market.address, name, person.ask, person.write)
        recorded = recorder.record(start)
        browser.release()
        return added(made, before.marketplace, market.address, name, recorded)

    prices = httpx.get(f"{market.address}/_state").json()["prices"]
    id, price = next((id, price) for id, price in prices.items() if price)
    row = f"{FILE}{id},0,{float(price) + 1:.2f}\r\n"
    made = before
    try:
        given = GIVEN.replace("CONTENT", row.replace("\r\n", "\\r\\n"))
        made = record(
            "stage_prices", "/pricing/import", (given, "c"), (pressed(UPLOAD), "c"),
            (pressed(REPORT), "y"), (pointed("#rows-accepted"), "e"),
        )  # fmt: skip
        staged = browser.page().url.removeprefix(market.address)
        made = record(
            "publish_prices", staged, (pointed("#rows-accepted"), "y"), (pressed(PUBLISH), "c"),
            (pointed(".buyer, h1", mask=True), "y"), (pointed("#rows-accepted"), "e"),
        )  # fmt: skip
        opened = made.workflows["publish_prices"].steps[0]
        assert isinstance(opened, pack.Goto)
        assert opened.path.startswith("/pricing/imports/{click_upload")
        (tmp_path / "prices.csv").write_text(row)
        values, files = {"rows_sent": "1"}, {"prices": tmp_path / "prices.csv"}
        done = performed(browser, made, tmp_path, "stage_prices", values, files)
        assert done.files["import_report"]
        performed(browser, made, tmp_path, "publish_prices", values | done.places, {})
        imports = httpx.get(f"{market.address}/_state").json()["imports"]
        assert [one["status"] for one in imports] == ["published", "published"]
        assert made.masked[-1] == "buyer"
        newer = msgspec.structs.replace(before, version=20)
        assert (
            completed(newer, made).workflows["publish_prices"] == made.workflows["publish_prices"]
        )
    finally:
        browser.quit()


def performed(
    browser: Any, its: pack.Pack, folder: Path, name: str, values: Any, files: Any
) -> Outcome:
    turns = Turns(its, QUICK, lambda turn: None, clock.sleep, lambda title, text: None)
    return perform(
        Tools(browser, its, folder / "downloads", QUICK, turns, clock.sleep), name, values, files
    )


def test_a_page_that_is_the_persons_turn_is_recorded(market: Server, tmp_path: Path) -> None:
    browser = a_browser(tmp_path / "browser")
    try:
        person = Person([(pointed("#password"), "y")], browser.page)
        recorder = Recorder(browser, market.address, "", person.ask, person.write)
        recorded = recorder.record_turn("/sign-in", "sign_in")
        made = added(
            a_pack(market.address, {}, [goto("/")]), "tests", market.address, None, recorded
        )
        [turn] = made.your_turn
        assert (turn.kind, len(turn.any_of)) == ("sign_in", 1)
        [name] = turn.any_of
        assert made.elements[name].locators[0] == pack.Locator(label="Password")
    finally:
        browser.quit()


def test_a_sign_in_at_another_site_is_recorded_by_its_site(
    market: Server, site: Site, tmp_path: Path
) -> None:
    site.pages["/"] = redirect(f"{market.address}/sign-in")
    browser = a_browser(tmp_path / "browser")
    try:
        person = Person([(pointed("h1"), "n"), (pointed("#password"), "y")], browser.page)
        recorder = Recorder(browser, site.origin, "", person.ask, person.write)
        recorded = recorder.record_turn("/", "sign_in")
        made = added(a_pack(site.origin, {}, [goto("/")]), "tests", site.origin, None, recorded)
        assert (made.sign_in_origins, made.your_turn) == ((market.address,), ())
    finally:
        browser.quit()


def test_a_recording_is_added_to_a_pack_of_the_same_marketplace() -> None:
    made = a_pack(SITE, ELEMENTS, [goto("/")])
    element = pack.Element((pack.Locator(css="#other"),))
    new = Recorded(
        {"export": element},
        [pack.Click(name="go", element="export", then=pack.Condition(visible="export"))],
    )
    more = added(made, "tests", SITE, "order_list", new)
    assert (more.version, more.elements["export_2"]) == (2, element)
    [go] = more.workflows["order_list"].steps
    assert isinstance(go, pack.Click)
    assert (go.element, go.then.visible) == ("export_2", "export_2")
    assert more.workflows["export_inventory"] == made.workflows["export_inventory"]
    with pytest.raises(OtherMarketplace, match="the pack is for tests at"):
        added(made, "another", SITE, "order_list", new)

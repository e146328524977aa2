"""Rules of the agent's browser without one: origins, paths, figures, columns, which browser is
found, the words about a lost element, and the repairs that wait for a person.
"""

from __future__ import annotations

import io
import os
import re
from datetime import timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.agents.repairs.lost_element import wanted
from cardsync.agents.repairs.propose_selector import LostElement, Proposal, propose
from cardsync_agent import clock
from cardsync_agent.browser.csv_download import no_csv
from cardsync_agent.browser.desktop_notification import notify
from cardsync_agent.browser.find_browser import VARIABLE, Found, find
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.origins import filled, fits, is_allowed, may_download, origin_of, shown
from cardsync_agent.browser.page_snippet import words_of
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.tab_watch import seconds_of
from cardsync_agent.browser.trouble import NoBrowser
from cardsync_agent.browser.your_turn import YourTurn
from cardsync_agent.client import PersonsTurn
from cardsync_agent.events import Reporter
from cardsync_agent.kept_repairs import KeptRepair, KeptRepairs
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows, Site
from cardsync_agent.pace import Stop
from cardsync_agent.workflow.fields import Seen, asks_for_secret
from cardsync_agent.workflow.figures import figure_of
from cardsync_agent.workflow.locators import description
from cardsync_agent.workflow.pack import Element, Locator, Looks
from cardsync_agent.workflow.pack_folder import PackFolder
from cardsync_agent.workflow.post_conditions import header_problem

SHOP = ["https://seller.example", "https://sign-in.example:8443"]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://seller.example/a?b", True),
        ("https://SELLER.example:443/", True),
        ("https://sign-in.example:8443/x", True),
        ("about:blank", True),
        ("http://seller.example/", False),
        ("https://seller.example:8443/", False),
        ("https://seller.example.evil.example/", False),
        ("https://seller.example@evil.example/", False),
        ("https://evil.example/https://seller.example", False),
        ("https://xn--seller-9za.example/", False),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("chrome://settings", False),
        ("https://[bad/", False),
    ],
)
def test_a_page_is_of_the_marketplace_by_its_origin_alone(url: str, allowed: bool) -> None:
    assert is_allowed(url, SHOP) is allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("blob:https://seller.example/1-2-3", True),
        ("data:text/csv,a", True),
        ("https://seller.example/x.csv", True),
        ("blob:https://evil.example/1", False),
        ("https://evil.example/x.csv", False),
        ("about:blank", False),
        ("", False),
    ],
)
def test_a_file_comes_from_the_marketplace_or_the_page_itself(url: str, allowed: bool) -> None:
    assert may_download(url, SHOP) is allowed


@pytest.mark.parametrize(
    ("pattern", "url", "holds"),
    [
        ("/a", "https://x.example/a", True),
        ("/a", "https://x.example/a?b=1#c", True),
        ("/", "https://x.example", True),
        ("/a/*", "https://x.example/a/b/c", True),
        ("/a/*/c", "https://x.example/a//c", True),
        ("/a", "https://x.example/ab", False),
        ("/a.b", "https://x.example/aXb", False),
        ("/a?p=*", "https://x.example/a?p=2", True),
        ("/a?p=1", "https://x.example/a", False),
    ],
)
def test_a_path_fits_a_pattern(pattern: str, url: str, holds: bool) -> None:
    assert fits(pattern, url) is holds


@given(st.text(max_size=40))
def test_a_value_in_a_path_stays_one_part_of_it(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    path = filled("/orders/{order}/lines", {"order": value})
    assert re.fullmatch(r"/orders/[A-Za-z0-9%_.~-]*/lines", path)
    assert origin_of(f"{SHOP[0]}{path}") == SHOP[0]


def test_an_address_is_shown_without_what_may_be_personal() -> None:
    assert shown("https://u:p@seller.example/a?mail=a@b.example#x") == "https://seller.example/a"


@pytest.mark.parametrize(
    ("text", "locale", "figure"),
    [
        ("1,204 rows", "en", "1204"),
        ("$1,204.50", "en-US", "1204.50"),
        ("1.204,50 €", "de", "1204.50"),
        ("\u22123 lines", "en", "-3"),
        ("1\u202f204", "fr", "1204"),
        ("rows: 0", "en", "0"),
        ("12 of 13", "en", None),
        ("none", "en", None),
        ("A4 2x", "en", None),
        ("", "en", None),
        ("1.2.3", "en", None),
    ],
)
def test_the_one_number_of_a_text(text: str, locale: str, figure: str | None) -> None:
    assert figure_of(text, locale) == (None if figure is None else Decimal(figure))


@given(st.decimals(-(10**9), 10**9, places=2), st.sampled_from(["en", "de"]))
def test_a_number_is_read_as_its_language_writes_it(number: Decimal, locale: str) -> None:
    text = f"{number:,.2f}"
    if locale == "de":
        text = text.translate(str.maketrans(",.", ".,"))
    assert figure_of(f"total {text} rows", locale) == number


@pytest.mark.parametrize(
    ("content", "needed", "problem"),
    [
        (b'\xef\xbb\xbf"Order #" ,Total\r\n', ("order #", "TOTAL"), None),
        (b"Order #,Total", ("Price",), "lacks the columns Price"),
        (b"", ("Price",), "lacks the columns Price"),
        (b"\xff\xfe,Price\n", ("Price",), None),
    ],
)
def test_the_columns_of_a_file(
    tmp_path: Path, content: bytes, needed: tuple[str, ...], problem: str | None
) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    assert header_problem(tmp_path / "x.csv", needed) == problem


@pytest.mark.parametrize(
    ("head", "is_csv"),
    [
        (b"a,b\n1,2", True),
        (b'\xef\xbb\xbf"Order #"', True),
        (b"  \n<!doctype html>", False),
        (b"<html>", False),
        (b"", False),
        (b"%PDF-1.7", False),
        (b"PK\x03\x04", False),
        (b"a\0b", False),
    ],
)
def test_content_that_is_no_csv(head: bytes, is_csv: bool) -> None:
    assert (no_csv(head) is None) is is_csv


@pytest.mark.parametrize(
    ("type_", "autocomplete", "names", "secret"),
    [
        ("password", "", "", True),
        ("text", "username current-password", "", True),
        ("text", "cc-csc", "", True),
        ("text", "", "login_password", True),
        ("text", "", "Card number", True),
        ("text", "", "otp", True),
        ("text", "off", "title", False),
        ("text", "", "shipping option", False),
        ("search", "", "pinned cards", False),
    ],
)
def test_a_field_that_asks_for_a_secret(
    type_: str, autocomplete: str, names: str, secret: bool
) -> None:
    seen = Seen("input", type_, autocomplete, names, beside=False, frame=False, leads_to="")
    assert asks_for_secret(seen) is secret


def a_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_browser_of_each_system_is_found(tmp_path: Path) -> None:
    nothing = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    cache = tmp_path / "cache"
    own = nothing | {"PLAYWRIGHT_BROWSERS_PATH": str(cache)}
    assert find(own, "linux") is None
    a_program(cache / "chromium-999" / "chrome-linux" / "chrome")
    newest = a_program(cache / "chromium-1200" / "chrome-linux64" / "chrome")
    found = find(own, "linux")
    assert found is not None
    assert (found.path, found.kind) == (newest, "playwright")
    for command, kind in (("chromium", "chromium"), ("microsoft-edge", "edge"),
                          ("google-chrome", "chrome")):  # fmt: skip
        path = a_program(tmp_path / "bin" / command)
        found = find(own, "linux")
        assert found is not None
        assert (found.path, found.kind) == (path, kind)
    edge = a_program(tmp_path / "Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge")
    found = find(own, "darwin")
    assert found is not None
    assert found.path == edge
    local = a_program(tmp_path / "local" / "Google/Chrome/Application/chrome.exe")
    found = find({"LOCALAPPDATA": str(tmp_path / "local")}, "win32")
    assert found is not None
    assert (found.path, found.name) == (local, "Google Chrome")
    given_path = a_program(tmp_path / "mine")
    found = find(own | {VARIABLE: str(given_path)}, "linux")
    assert found is not None
    assert (found.path, found.kind) == (given_path, "given")
    with pytest.raises(NoBrowser, match="names /nowhere, which is no program"):
        find(own | {VARIABLE: "/nowhere"}, "linux")


def test_the_pace_is_a_persons_and_can_be_set() -> None:
    pace = HumanPace.from_env(
        {"CARDSYNC_AGENT_BROWSER_REST_LEAST": "0.1", "CARDSYNC_AGENT_BROWSER_REST_MOST": "0.3"}
    )
    assert all(0.1 <= pace.rest() <= 0.3 for _ in range(50))
    assert HumanPace().rest_least > 0.3
    seeded = [HumanPace(chance=Random(7)).rest() for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_the_marketplaces_wait_is_a_number_or_a_date() -> None:
    later = format_datetime(clock.now() + timedelta(hours=2), usegmt=True)
    assert 7_000 < (seconds_of(later) or 0) <= 7_200
    assert (seconds_of("7"), seconds_of("Sat, 21 Nov 2020 08:00:00 GMT")) == (7, 0)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5", "Sat, 21 Nov 2020 08:00:00 -0000", "²"])
def test_another_text_is_no_wait(text: str) -> None:
    assert seconds_of(text) is None


def test_a_notification_gives_its_texts_to_the_systems_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("notify-send", "osascript", "powershell"):
        path = a_program(tmp_path / program)
        path.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" "$CARDSYNC_TEXT" > {tmp_path}/said-{program}\n'
        )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    text = '--help"; $(touch x) `y`'
    for platform, program in (
        ("linux", "notify-send"), ("darwin", "osascript"), ("win32", "powershell"),
    ):  # fmt: skip
        assert notify("cardsync", text, platform)
        assert text in (tmp_path / f"said-{program}").read_text()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert not notify("cardsync", text, "linux")


BUTTON = Element(
    (Locator(role="button", name="Export CSV"), Locator(test_id="export-csv")),
    Looks(
        tag="button", text="Export CSV", id="export", classes=("btn", "primary"), around="Pricing"
    ),
)


def test_the_description_of_an_element_is_read_by_the_servers_ranker() -> None:
    read = wanted(description(BUTTON), "press_export")
    assert (read.tag, read.label, read.classes) == ("button", "Export CSV", {"btn", "primary"})
    assert read.attributes == {"id": "export", "role": "button", "data-testid": "export-csv"}
    assert "pricing" in read.around


@pytest.mark.parametrize(
    ("element", "page", "found"),
    [
        (BUTTON, '<button data-t="imp">Import CSV</button><button class=x>Export as CSV</button>',
         "Export as CSV"),
        (Element((Locator(label="Price file"),), Looks(tag="input", type="file", label="Price file")),
         '<input type=text name=q><label>Prices file<input type=file name=upload2></label>', None),
        (Element((Locator(role="link", name="Orders"),)),
         '<a href="/x">Cards</a><nav><a href="/o" id=o2>My orders</a></nav>', "My orders"),
        (Element((Locator(text="Publish"),)), "<p>Publish</p><button>Publish</button>", "Publish"),
    ],
)  # fmt: skip
def test_the_ranker_finds_an_element_by_its_description(
    element: Element, page: str, found: str | None
) -> None:
    proposal = propose(
        page, LostElement(description(element), "press_it", None, frozenset(), "export")
    )
    assert isinstance(proposal, Proposal)
    from selectolax.lexbor import LexborHTMLParser

    [node] = LexborHTMLParser(page).css(proposal.selector)
    assert node.tag == "input" if found is None else node.text() == found


texts = st.text(max_size=120)


@given(st.builds(Looks, tag=st.sampled_from(["a", "button", "input", ""]), text=texts, label=texts,
                 id=texts, name=texts, title=texts, around=texts))  # fmt: skip
def test_any_record_gives_a_description_that_the_server_takes(looks: Looks) -> None:
    said = description(Element((Locator(css="#x"),), looks))
    assert 1 <= len(said) <= 1_000
    wanted(said, "press_it")


def test_the_words_of_a_lost_element() -> None:
    words = words_of("export_button", BUTTON)
    assert {"export", "csv", "pricing"} <= set(words)
    assert len(words) == len(set(words))


def kept_repair(found: str = "#new", **more: object) -> KeptRepair:
    basics = {"number": 0, "workflow": "w", "step": "s", "element": "e", "lost": "l"}
    return KeptRepair(found=found, **{**basics, **more})  # type: ignore[arg-type]


def test_kept_repairs_remember_what_a_person_said(tmp_path: Path) -> None:
    kept = KeptRepairs(tmp_path)
    assert kept.all() == []
    one, two = kept.note(kept_repair()), kept.note(kept_repair("#other", state="used"))
    assert (one.number, two.number) == (1, 2)
    assert [x.found for x in kept.usable("w", "s", "l", changes=False)] == ["#other"]
    assert kept.usable("w", "s", "l", changes=True) == []
    assert kept.decide(1, "confirmed") is not None
    assert [x.found for x in kept.usable("w", "s", "l", changes=True)] == ["#new"]
    kept.note(kept_repair(state="used"))
    assert kept.usable("w", "s", "l", changes=True)[0].state == "confirmed"
    assert kept.decide(2, "wrong") is not None
    kept.note(kept_repair("#other", state="used"))
    assert kept.wrong("w", "s", "l") == ["#other"]
    assert [x.found for x in kept.usable("w", "s", "l", changes=False)] == ["#new"]
    assert kept.usable("w", "s", "another", changes=False) == []
    assert kept.decide(3, "wrong") is None


def test_a_persons_answer_is_sent_once_and_again_after_an_outage(tmp_path: Path) -> None:
    kept, sent = KeptRepairs(tmp_path), []
    kept.note(kept_repair())
    kept.decide(1, "wrong")

    def away(one: KeptRepair) -> None:
        raise OSError

    with pytest.raises(OSError):
        kept.send_answers(away)
    for _ in range(2):
        kept.send_answers(lambda one: sent.append(one.number))
    assert sent == [1]
    (tmp_path / "kept-repairs.json").write_bytes(b"broken")
    assert kept.all() == []


def test_what_a_step_asks_of_the_person_is_shown_like_a_sign_in(tmp_path: Path) -> None:
    say = Reporter(io.StringIO(), json_events=True)
    browser = SellersBrowser(Found(tmp_path / "none", "Chromium", "chromium"), tmp_path)
    flows = BrowserWorkflows(
        tmp_path, tmp_path, Site("market", "en", browser), PackFolder(tmp_path, [], say), say,
        HumanPace(), Stop(),
    )  # fmt: skip
    assert flows.turn() is None
    flows.note_turn(YourTurn("human", "https://market.example/shops", "choose the shop"))
    assert flows.turn() == PersonsTurn("human", "market.example")
    flows.note_turn(None)
    assert flows.turn() is None

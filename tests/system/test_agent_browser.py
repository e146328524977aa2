"""The agent's workflows in a real Chromium, against small pages of the test: verbs and
post-conditions, hostile pages, the person's turn, files, errors of the marketplace, pictures.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.system.agent_pages import (
    CSV,
    Answer,
    Site,
    a_file,
    click,
    goto,
    html,
    redirect,
    step,
)
from tests.system.workflow_runner import QUICK, Runner, a_browser, chromium

from cardsync_agent import clock
from cardsync_agent.browser import page_pictures, page_snippet
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import (
    BadDownload,
    Busy,
    ElementLost,
    ForeignOrigin,
    Interrupted,
    MarketplaceDown,
    PasswordField,
    StepNotDone,
    Trouble,
    YourTurnMissed,
)
from cardsync_agent.browser.your_turn import Turns
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows
from cardsync_agent.marketplace.browser_workflows import Site as Place
from cardsync_agent.pace import Stop
from cardsync_agent.step_ends import StepFailed
from cardsync_agent.workflow.pack import Pack
from cardsync_agent.workflow.pack_folder import PackFolder
from cardsync_agent.workflow.perform import Tools, perform

pytestmark = pytest.mark.skipif(chromium is None, reason="there is no browser")


@pytest.fixture(scope="module")
def sellers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SellersBrowser]:
    browser = a_browser(tmp_path_factory.mktemp("home") / "browser")
    yield browser
    browser.quit()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def elsewhere() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def runner(sellers: SellersBrowser, site: Site, tmp_path: Path) -> Runner:
    return Runner(sellers, site, tmp_path)


BUTTON = {"role": "button", "name": "Go"}


@pytest.mark.night
def test_a_workflow_of_every_verb_is_done_with_named_values_and_files(
    runner: Runner, tmp_path: Path
) -> None:
    runner.site.pages["/form"] = html(
        "<form action=/done method=post enctype=multipart/form-data><label>Title"
        " <input name=title></label><select name=game><option>Magic<option>Pokemon</select>"
        "<input type=checkbox id=live name=live><input type=file id=f name=f style='display:none'>"
        "<button>Go</button></form>"
    )
    runner.site.pages["/done"] = html(
        "<h1>Done</h1><p id=rows>1,204 rows</p><a href=/x.csv>Get</a>"
    )
    runner.site.pages["/x.csv"] = a_file()
    (tmp_path / "prices.csv").write_bytes(CSV)
    its = runner.pack(
        {
            "title": {"label": "Title"}, "game": {"css": "select"}, "live": {"css": "#live"},
            "file": {"css": "#f"}, "go": BUTTON, "rows": {"css": "#rows"}, "get": {"text": "Get"},
            "done": {"role": "heading", "name": "Done"}, "banner": {"css": "#cookies"},
        },
        goto("/form"),
        step("click", "no_cookies", element="banner", optional=True),
        step("fill", "title", element="title", value="title"),
        step("choose", "game", element="game", value="game"),
        step("choose", "live", element="live"),
        step("upload", "file", element="file", file="prices"),
        step("wait", "wait", seconds=1, then={}),
        click("go", changes=True, then={"url": "/done", "visible": "done", "gone": "go"}),
        step("expect", "rows", {"figure": "rows", "equals": "rows"}),
        step("download", "get", {"file": "inventory", "header": ["tcgplayer id"]}, element="get",
             file="inventory"),
        step("screenshot", "picture", {}),
    )  # fmt: skip
    outcome = runner.run(
        its,
        {"title": "A title", "game": "Pokemon", "rows": "1204"},
        {"prices": tmp_path / "prices.csv"},
    )
    assert outcome.file("inventory").read_bytes() == CSV
    assert outcome.pictures[0].page_url == f"{runner.site.origin}/done"
    assert outcome.pictures[0].content.startswith(b"\x89PNG")
    assert runner.changes == ["press_go"]
    assert [one.step for one in runner.steps if one.left_out] == ["no_cookies"]
    found = {one.step: one.found_by for one in runner.steps}
    assert (found["title"], found["press_go"]) == ('label "Title"', 'role button "Go"')
    assert "POST /done" in runner.site.asked


LATE = (
    "<script>setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<i id=it>x</i>'), 400)"
    "</script>"
)
# What a page must be like for a post-condition to hold, and one in which it does not.
CONDITIONS = {
    "url": ({"url": "/a/*/c"}, "/a/b/c", "<p>", "/a/b/d", "<p>"),
    "query": ({"url": "/a?page=2"}, "/a?page=2", "<p>", "/a?page=3", "<p>"),
    "visible": ({"visible": "it"}, "/", "<i id=it>x</i>", "/", "<i id=it hidden>x</i>"),
    "twice": ({"visible": "it"}, "/", "<i id=it>x</i>", "/", "<i id=it>x</i><i id=it>y</i>"),
    "gone": ({"gone": "it"}, "/", "<i id=it hidden>x</i>", "/", "<i id=it>x</i><i id=it>y</i>"),
    "figure": ({"figure": "it", "equals": "n"}, "/", "<i id=it>12 rows</i>", "/",
               "<i id=it>13 rows</i>"),
    "figures": ({"figure": "it", "equals": "n"}, "/", "<i id=it>12 rows</i>", "/",
                "<i id=it>12 of 13</i>"),
    "late": ({"visible": "it"}, "/", LATE, "/", "<p>"),
}  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("case", CONDITIONS)
def test_a_post_condition_holds_or_ends_the_workflow(runner: Runner, case: str) -> None:
    then, path, page, other_path, other = CONDITIONS[case]
    its = {"it": {"css": "#it"}}
    for address, body, holds in ((path, page, True), (other_path, other, False)):
        runner.site.pages[address.partition("?")[0]] = html(body)
        made = runner.pack(its, goto(address, within=1, **then))
        if holds:
            runner.run(made, {"n": "12"})
        else:
            with pytest.raises(StepNotDone, match="1 s after open"):
                runner.run(made, {"n": "12"})


@pytest.mark.night
def test_locators_are_tried_in_order_and_one_that_finds_two_does_not_count(runner: Runner) -> None:
    runner.site.pages["/"] = html("<button>Go</button><button>Go</button><a id=b href=/2>Go</a>")
    runner.site.pages["/2"] = html("<p>")
    ways = [BUTTON, {"test_id": "go"}, {"css": "#b"}]
    runner.run(runner.pack({"go": ways}, goto("/"), click("go", then={"url": "/2"})))
    assert runner.steps[-1].found_by == 'css "#b"'
    with pytest.raises(ElementLost, match=r"go is not on the page .*, or several times"):
        runner.run(runner.pack({"go": BUTTON}, goto("/"), click("go")))


@pytest.mark.night
def test_the_steps_are_done_again_on_each_next_page(runner: Runner) -> None:
    for n in (1, 2, 3):
        more = f"<a href=/{n + 1}>Next</a>" if n < 3 else ""
        runner.site.pages[f"/{n}"] = html(f"<a href=/file{n}>Get</a>{more}")
        runner.site.pages[f"/file{n}"] = a_file(CSV + b"%d" % n)
    its = runner.pack(
        {"next": {"text": "Next"}, "get": {"text": "Get"}},
        goto("/1"),
        step("download", "get", {"file": "orders"}, element="get", file="orders"),
        repeat="next",
    )
    brought = runner.run(its).files["orders"]
    assert [file.read_bytes()[-1:] for file in brought] == [b"1", b"2", b"3"]


# Each leads away from the marketplace in a way of its own.
LEADING_AWAY = {
    "link": '<a id=go href="{there}">Go</a>',
    "form": '<form action="{there}"><button id=go>Go</button></form>',
    "script": "<button id=go onclick=\"location='{there}'\">Go</button>",
    "later": "<button id=go onclick=\"setTimeout(() => location='{there}', 300)\">Go</button>",
    "redirect": "<a id=go href=/away>Go</a>",
    "window": "<button id=go onclick=\"window.open('{there}')\">Go</button>",
    "window without opener": "<button id=go onclick=\"window.open('{there}', '_blank',"
    " 'noopener')\">Go</button>",
    "window that redirects": "<button id=go onclick=\"window.open('/away')\">Go</button>",
    "form that changes": "<form id=f method=post action=/here><input name=a value=b><button id=go>"
    "Go</button></form><script>f.onsubmit = () => {{ f.action = '{there}' }}</script>",
    "form in a window": "<form id=f method=post action=/here target=_blank><button id=go>Go"
    "</button></form><script>f.onsubmit = () => {{ f.action = '{there}' }}</script>",
    "form in a frame": "<form id=f method=post action=/here target=in><button id=go>Go</button>"
    "</form><iframe name=in></iframe><script>f.onsubmit = () => {{ f.action = '{there}' }}</script>",
}


@pytest.mark.parametrize("way", LEADING_AWAY)
def test_a_page_that_leads_to_another_origin_ends_the_workflow(
    runner: Runner, elsewhere: Site, way: str
) -> None:
    there = f"{elsewhere.origin}/trap"
    elsewhere.pages["/trap"] = html("<h1 id=ready>Almost the same</h1>")
    runner.site.pages["/"] = html(LEADING_AWAY[way].format(there=there))
    runner.site.pages["/away"] = redirect(there)
    its = runner.pack(
        {"go": {"css": "#go"}, "ready": {"css": "#ready"}},
        goto("/"),
        click("go", then={"visible": "ready", "within": 3}),
    )
    with pytest.raises(ForeignOrigin, match=re.escape(elsewhere.origin)):
        runner.run(its)
    page = runner.browser.page()
    assert page.url == "about:blank"
    assert len(page.context.pages) == 1
    assert elsewhere.asked == []


INSIDE = {
    "the frame itself": "<iframe id=go src={there}></iframe>",
    "around the frame": "<div id=go role=button><iframe src={there}></iframe></div>",
    "above the button": "<button id=go>Go</button><iframe src={there}"
    " style='position:fixed;inset:0;width:100%;height:100%'></iframe>",
}


@pytest.mark.parametrize("way", INSIDE)
def test_a_page_within_the_page_gets_no_click(runner: Runner, elsewhere: Site, way: str) -> None:
    pressed = "<body onclick=\"fetch('/pressed')\" style='height:900px'><input>"
    elsewhere.pages["/frame"] = html(pressed)
    runner.site.pages["/"] = html(INSIDE[way].format(there=f"{elsewhere.origin}/frame"))
    its = runner.pack({"go": {"css": "#go"}}, goto("/"), click("go", then={"url": "/"}))
    with pytest.raises(Trouble):
        runner.run(its)
    assert [one for one in elsewhere.asked if "pressed" in one] == []


def test_the_persons_own_tabs_go_where_they_like(runner: Runner, elsewhere: Site) -> None:
    elsewhere.pages["/"] = html("<h1 id=theirs>Theirs</h1>")
    page = runner.browser.page()
    theirs = page.context.new_page()

    runner.site.pages["/"] = html("<i id=ok>x</i>")
    its = runner.pack({"ok": {"css": "#ok"}}, goto("/", visible="ok"), step("wait", "w", seconds=1))
    theirs.evaluate("(to) => setTimeout(() => location = to, 300)", elsewhere.origin)
    runner.run(its)
    theirs.wait_for_selector("#theirs", timeout=3000)
    theirs.close()


def test_a_page_that_is_a_redirect_elsewhere_is_not_worked_on(
    runner: Runner, elsewhere: Site
) -> None:
    elsewhere.pages["/"] = html("<p>")
    runner.site.pages["/"] = redirect(f"{elsewhere.origin}/")
    with pytest.raises(ForeignOrigin):
        runner.run(runner.pack({}, goto("/")))
    assert runner.browser.page().url == "about:blank"


SECRETS = (
    "type=password", "autocomplete=current-password", "autocomplete='section-a one-time-code'",
    "autocomplete=cc-number", "name=userPassword", "aria-label='Your passcode'",
)  # fmt: skip


@pytest.mark.parametrize("attributes", SECRETS)
def test_a_field_for_a_secret_is_never_filled(runner: Runner, attributes: str) -> None:
    runner.site.pages["/"] = html(f"<input class=f {attributes}>")
    its = runner.pack(
        {"f": {"css": ".f"}}, goto("/"), step("fill", "f", element="f", value="v", changes=True)
    )
    with pytest.raises(PasswordField, match="the sync app never writes one"):
        runner.run(its, {"v": "hunter2"})
    assert runner.browser.page().input_value(".f") == ""


# What a field of a page makes of "12.50", and whether that is the same.
FIELDS = {
    "as it is": ("<input id=f>", True),
    "as a number": ("<input id=f type=number step=any oninput=\"value = '12.5'\">", True),
    "cut off": ("<input id=f maxlength=3>", False),
    "emptied": ("<input id=f oninput=\"value = ''\">", False),
    "gone since": ("<input id=f onchange='remove()' oninput='blur()'>", True),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_must_hold_what_was_written(runner: Runner, case: str) -> None:
    field, holds = FIELDS[case]
    runner.site.pages["/"] = html(field)
    fill = step("fill", "f", {"url": "/", "within": 1}, element="f", value="v")
    its = runner.pack({"f": {"css": "#f"}}, goto("/"), fill)
    if holds:
        runner.run(its, {"v": "12.50"})
    else:
        with pytest.raises(StepNotDone, match="f does not hold what was written") as problem:
            runner.run(its, {"v": "12.50"})
        assert "12" not in str(problem.value)


def test_a_form_with_a_filled_password_is_not_sent(runner: Runner) -> None:
    runner.site.pages["/"] = html(
        "<form action=/in><input type=password name=p value=x><button>Go</button></form>"
    )
    with pytest.raises(PasswordField, match="sign in yourself"):
        runner.run(runner.pack({"go": BUTTON}, goto("/"), click("go")))
    assert not any("/in" in one for one in runner.site.asked)


BAD_FILES = {
    "html": (a_file(b"<html><h1>Session expired</h1>", "text/html"), "is text/html, and no CSV"),
    "html as csv": (a_file(b"\n<!doctype html><p>"), "is a page, and no CSV file"),
    "program": (a_file(b"MZ\0\0", "application/x-msdownload"), "is application/x-msdownload"),
    "empty": (a_file(b""), "is empty"),
    "half": (a_file(CSV * 9000, cut_at=100_000), "was cut off"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_download_is_a_whole_csv_file_or_absent(runner: Runner, case: str) -> None:
    answer, reason = BAD_FILES[case]
    runner.site.pages |= {"/": html("<a href=/x.csv>Get</a>"), "/x.csv": answer}
    with pytest.raises(BadDownload, match=reason):
        runner.run(getting(runner))
    assert [file for file in (runner.folder / "downloads").rglob("*") if file.is_file()] == []


def getting(runner: Runner, **then: Any) -> Pack:
    then = {"file": "inventory", "within": 3, **then}
    get = step("download", "get", then, element="get", file="inventory")
    return runner.pack({"get": {"text": "Get"}}, goto("/"), get)


def test_a_file_of_another_origin_or_without_the_columns_is_refused(
    runner: Runner, elsewhere: Site
) -> None:
    elsewhere.pages["/x.csv"] = a_file()
    runner.site.pages["/"] = html("<a href=/x.csv>Get</a>")
    runner.site.pages["/x.csv"] = redirect(f"{elsewhere.origin}/x.csv")
    with pytest.raises(ForeignOrigin):
        runner.run(getting(runner))
    runner.site.pages["/x.csv"] = a_file()
    with pytest.raises(StepNotDone, match="lacks the columns Price"):
        runner.run(getting(runner, header=["TCGplayer Id", "Price"], within=1))


WAYS_OF_A_FILE = {
    "attribute": "<a href=/x.csv download>Get</a>",
    "window": "<a href=/x.csv target=_blank>Get</a>",
    "script": "<button onclick=\"location='/x.csv'\">Get</button>",
    "blob": "<button onclick=\"const a = document.createElement('a'); a.download = 'x.csv';"
    "a.href = window.URL.createObjectURL(new Blob([document.querySelector('pre').textContent]));"
    f'a.click()">Get</button><pre>{CSV.decode()}</pre>',
}


@pytest.mark.first(1)
@pytest.mark.parametrize("way", WAYS_OF_A_FILE)
def test_a_file_comes_in_whatever_way_the_page_gives_it(runner: Runner, way: str) -> None:
    runner.site.pages |= {"/": html(WAYS_OF_A_FILE[way]), "/x.csv": a_file()}
    lines = runner.run(getting(runner)).file("inventory").read_bytes().split()
    assert lines == CSV.split()
    assert len(runner.browser.page().context.pages) == 1


@pytest.mark.night
def test_a_page_without_a_file_ends_in_time(runner: Runner) -> None:
    runner.site.pages["/"] = html("<a href=#>Get</a>")
    with pytest.raises(StepNotDone, match="no file came within 1 s"):
        runner.run(getting(runner, within=1))


@pytest.mark.night
def test_the_marketplaces_wait_is_kept_up_to_a_limit(runner: Runner) -> None:
    answers = [Answer(b"slow down", 429, {"Retry-After": "1"}), html("<p>")]
    runner.site.pages["/"] = lambda: answers.pop(0)
    began = clock.monotonic()
    runner.run(runner.pack({}, goto("/")))
    assert clock.monotonic() - began >= 1
    runner.site.pages["/"] = Answer(b"", 503, {"Retry-After": "600"})
    with pytest.raises(Busy) as busy:
        runner.run(runner.pack({}, goto("/")))
    assert (busy.value.retry_after, busy.value.may_try_again) == (600, True)


@pytest.mark.night
def test_the_next_workflow_keeps_the_wait_that_the_last_one_met(
    runner: Runner, tmp_path: Path
) -> None:
    of_tests = tmp_path / "packs" / "tests"
    of_tests.mkdir(parents=True)
    its = runner.pack({}, goto("/"))
    (of_tests / "pack.json").write_bytes(msgspec.json.encode(its))
    say = Reporter(io.StringIO(), json_events=True)
    packs = PackFolder(tmp_path, [], say, of_program=tmp_path / "packs")
    where = Place("tests", "en", runner.browser)
    pace = replace(QUICK, busy_most=0.5)
    flows = BrowserWorkflows(tmp_path, tmp_path, where, packs, say, pace, Stop())
    answers = [Answer(b"", 429, {"Retry-After": "1"}), html("<p>")]
    runner.site.pages["/"] = lambda: answers.pop(0)
    with pytest.raises(StepFailed, match="asks to wait 1 s"):
        flows.perform("export_inventory", tries=1)
    began = clock.monotonic()
    flows.perform("export_inventory", tries=1)
    assert clock.monotonic() - began >= 0.8
    runner.site.pages["/"] = Answer(b"", 429, {"Retry-After": "3000"})
    for _ in range(2):
        with pytest.raises(StepFailed, match="asks to wait"):
            flows.perform("export_inventory")
    assert runner.site.asked.count("GET /") == 3


@pytest.mark.night
def test_an_error_of_the_marketplace_may_be_tried_again(runner: Runner) -> None:
    runner.site.pages["/"] = Answer(b"oops", 500, {"Content-Type": "text/plain"})
    with pytest.raises(MarketplaceDown, match="500 at ") as down:
        runner.run(runner.pack({}, goto("/")))
    assert (down.value.may_try_again, down.value.changed, down.value.step) == (True, False, "open")
    runner.site.close()
    with pytest.raises(MarketplaceDown, match="cannot be reached"):
        runner.run(runner.pack({}, goto("/")))


@pytest.mark.night
def test_what_a_page_asked_for_itself_explains_a_condition_that_does_not_hold(
    runner: Runner,
) -> None:
    runner.site.pages["/"] = html("<button onclick=\"fetch('/data')\">Go</button>")
    runner.site.pages["/data"] = Answer(b"", 429, {"Retry-After": "700"})
    go = click("go", then={"visible": "rows", "within": 1}, changes=True)
    with pytest.raises(Busy) as busy:
        runner.run(runner.pack({"go": BUTTON, "rows": {"css": "#rows"}}, goto("/"), go))
    assert (busy.value.retry_after, busy.value.changed) == (700, True)


SIGN_IN = "<form><input type=password id=pw></form>"
TURNS = [{"kind": "sign_in", "any_of": ["pw"], "url": "/login*"}, {"kind": "captcha", "any_of": ["riddle"]}]  # fmt: skip
PARTS = {"pw": {"css": "#pw"}, "riddle": {"css": "#riddle"}, "go": BUTTON, "ok": {"css": "#ok"}}


def test_the_agent_waits_for_the_sign_in_and_begins_again(runner: Runner) -> None:
    signed_in: list[bool] = []
    login = f"/login?back={'x' * 20}"
    runner.site.pages["/"] = lambda: html("<i id=ok>x</i>") if signed_in else redirect(login)
    runner.site.pages["/login"] = lambda: redirect("/") if signed_in else html(SIGN_IN)

    def person() -> None:
        signed_in.append(True)
        runner.browser.page().evaluate("() => setTimeout(() => location.reload(), 200)")

    runner.on_turn = person
    runner.run(runner.pack(PARTS, goto("/", visible="ok"), your_turn=TURNS))
    begun, over = runner.turns
    assert begun is not None
    assert over is None
    assert str(begun) == (
        f"your turn: sign in at {runner.site.origin}/login in the browser window of cardsync-agent"
    )


@pytest.mark.parametrize("later", [True, False])
def test_at_the_site_of_a_sign_in_the_agent_only_waits(
    runner: Runner, elsewhere: Site, later: bool
) -> None:
    """Only here does the tab go to another site that it may be at, at once or before a click."""
    signed_in: list[bool] = []
    there = f"{elsewhere.origin}/login"
    leads = html(f"<button>Go</button><script>setTimeout(() => location = '{there}', 200)</script>")
    home = html("<button onclick=\"this.outerHTML = '<i id=ok>x</i>'\">Go</button>")
    away = leads if later else redirect(there)
    runner.site.pages["/"] = lambda: home if signed_in else away
    elsewhere.pages["/login"] = html(f"<button onclick=\"fetch('/pressed')\">Go</button>{SIGN_IN}")

    def person() -> None:
        signed_in.append(True)
        back = f"() => setTimeout(() => location = '{runner.site.origin}', 100)"
        runner.browser.page().evaluate(back)

    runner.on_turn, runner.pace = person, _paced(QUICK, rest_least=0.6, rest_most=0.7)
    go = click("go", then={"visible": "ok"})
    its = runner.pack(PARTS, goto("/"), go, sign_in_origins=[elsewhere.origin])
    runner.run(its)
    begun, over = runner.turns
    assert begun is not None
    assert over is None
    assert (begun.kind, begun.url) == ("sign_in", there)
    assert [one for one in elsewhere.asked if "pressed" in one] == []


@pytest.mark.night
def test_the_step_fails_if_nobody_signs_in(runner: Runner) -> None:
    runner.pace = _paced(QUICK, turn_most=0.3)
    runner.site.pages["/"] = html("<div id=riddle>riddle</div>")
    with pytest.raises(YourTurnMissed, match="your turn: complete the CAPTCHA at http"):
        runner.run(runner.pack(PARTS, goto("/", visible="ok"), your_turn=TURNS))


@pytest.mark.night
def test_after_a_change_a_sign_in_ends_the_workflow_and_repeats_nothing(runner: Runner) -> None:
    runner.site.pages["/"] = html("<form action=/publish method=post><button>Go</button></form>")
    runner.site.pages["/publish"] = html(SIGN_IN)
    runner.site.pages["/home"] = html("<p>")
    runner.on_turn = lambda: runner.browser.page().evaluate(
        "() => setTimeout(() => location = '/home', 100)"
    )
    its = runner.pack(
        PARTS, goto("/"), click("go", changes=True, then={"visible": "ok"}), your_turn=TURNS
    )
    with pytest.raises(Interrupted, match="after press_go had begun") as ended:
        runner.run(its)
    assert ended.value.changed
    assert runner.site.asked.count("POST /publish") == 1


def test_a_step_of_the_person_goes_on_when_its_condition_holds(runner: Runner) -> None:
    runner.site.pages["/"] = html("<p>")
    runner.on_turn = lambda: runner.browser.page().evaluate(
        "() => document.body.insertAdjacentHTML('beforeend', '<i id=ok>x</i>')"
    )
    ask = step("human", "choose", {"visible": "ok"}, message="choose the shop")
    runner.run(runner.pack(PARTS, goto("/"), ask))
    assert [turn and turn.to_do for turn in runner.turns] == ["choose the shop", None]


def pixels(png: bytes) -> tuple[int, int, list[bytearray]]:
    """Read an 8-bit RGB or RGBA picture: width, height, rows of RGB."""
    width, height, depth, colors = *(int.from_bytes(png[i : i + 4]) for i in (16, 20)), *png[24:26]
    assert depth == 8
    size = {2: 3, 6: 4}[colors]
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    raw, rows, before = zlib.decompress(data), [], bytearray(width * size)
    for y in range(height):
        kind = raw[y * (width * size + 1)]
        line = bytearray(raw[y * (width * size + 1) + 1 : (y + 1) * (width * size + 1)])
        for x in range(width * size):
            a = line[x - size] if x >= size else 0
            b, c = before[x], before[x - size] if x >= size else 0
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, near)[kind]) & 255
        rows.append(line)
        before = line
    return (
        width,
        height,
        [bytearray(v for x in range(width) for v in row[x * size : x * size + 3]) for row in rows],
    )


RED = bytes((255, 0, 0))
PERSONAL = (
    "<style>i, b, u, input { background: #f00; color: #f00; border: 0; display: inline-block;"
    " padding: 1px }</style>"
    "<i class=buyer>Ada Lovelace</i> <b>mail ada@example.com now</b>"
    " <u>ada<s>@example</s>.com</u> <input type=password value=secret>"
    " <input value=ada@example.com> <dialog id=d><i class=buyer>Ada again</i></dialog>"
)


TO_RECORD = {"locators": [], "recorded": False}


def red(runner: Runner, masked: tuple[str, ...]) -> int:
    its = runner.pack({"buyer": {"css": ".buyer"}, "lost": TO_RECORD}, goto("/"), masked=masked)
    runner.run(its)
    page = runner.browser.page()
    page.evaluate("() => document.querySelector('#d').showModal()")
    taken = page_pictures.picture(page, its)
    assert page.evaluate("() => document.querySelector('[data-cardsync-covers]')") is None
    _, _, rows = pixels(taken.content)
    return sum(row[at : at + 3] == RED for row in rows for at in range(0, len(row), 3))


def test_pictures_cover_what_is_personal_also_in_dialogs(runner: Runner) -> None:
    runner.site.pages["/"] = html(PERSONAL)
    assert red(runner, ("buyer",)) == 0
    runner.site.pages["/"] = html(f"{STYLE}<ul><li><button><i>Ship</i></button></li></ul>")
    assert red(runner, ("buyer",)) > 50, "a button shows what the page is"
    runner.site.pages["/"] = html(f"{STYLE}<button><i class=buyer>Write to Ada</i></button>")
    assert red(runner, ("buyer",)) == 0, "a button that the pack covers"


STYLE = PERSONAL.partition("</style>")[0] + "</style><dialog id=d>"
# Where a buyer may be on a page of which the pack knows nothing.
UNKNOWN = {
    "table": "<table><tr><th><i>Ada</i></th><td><a href=/><i>A-1</i></a></td></tr></table>",
    "cards": "<ul><li><h3><i>Ada</i></h3><p><i>Ada</i></p></li></ul><article><header><i>Ada</i>"
    "</header><i>12 Elm Street</i></article>",
    "divisions": "<h1>Order of <i>Ada Lovelace</i></h1><div><span><i>Ada Lovelace</i></span>"
    "<a href=/buyers/7><i>Ada</i></a></div><address><i>12 Elm Street</i><br><i>Paris</i></address>",
    "boxes": "<label><input type=checkbox><i>Ada</i></label><details open><summary><i>Ada</i>"
    "</summary></details><nav>Orders / <i>Ada</i></nav>",
    "fields": "<label>Name <input value='Ada Lovelace'></label><input placeholder='12 Elm Street'>",
    "own elements": "<x-buyer></x-buyer><script>document.querySelector('x-buyer').attachShadow("
    "{mode: 'open'}).innerHTML = '<u style=\"background: red; color: red\">Ada</u>'</script>",
}


@pytest.mark.parametrize("page", UNKNOWN)
def test_a_picture_of_an_unknown_page_shows_no_buyer(runner: Runner, page: str) -> None:
    """Only here does a page meet a pack whose masks find nothing, are unrecorded, or are none."""
    runner.site.pages["/"] = html(STYLE + UNKNOWN[page])
    for masked in (("buyer",), ("lost",), ()):
        assert red(runner, masked) == 0


@pytest.mark.night
def test_a_picture_gets_smaller_until_it_fits(runner: Runner) -> None:
    noise = (
        "<canvas id=c width=1200 height=800></canvas><script>const x = c.getContext('2d');"
        "const i = x.createImageData(1200, 800); for (let n = 0; n < i.data.length; n++)"
        "i.data[n] = Math.random() * 256; x.putImageData(i, 0, 0)</script>"
    )
    runner.site.pages["/"] = html(noise)
    its = runner.pack({}, goto("/"))
    runner.run(its)
    page = runner.browser.page()
    whole = page_pictures.picture(page, its, 100_000_000).content
    small = page_pictures.picture(page, its).content
    assert len(whole) > 2_000_000 > len(small)
    assert small[:4] == b"\x89PNG"


def test_a_tab_behind_one_of_the_persons_own_holds_nobody_up(runner: Runner) -> None:
    """Alone finds that the real browser makes a picture of a hidden tab wait, up to three minutes."""
    runner.site.pages["/"] = html("<button>Go</button>" + "<p>Some text</p>" * 300)
    its = runner.pack({}, goto("/"))
    runner.run(its)
    page = runner.browser.page()
    theirs = page.context.new_page()
    theirs.goto(runner.site.origin)
    theirs.bring_to_front()
    for _ in range(4):
        runner.run(its)
        began = clock.monotonic()
        with suppress(StepNotDone):
            page_pictures.picture(page, its)
        assert clock.monotonic() - began < 8
        assert page.evaluate("() => document.querySelector('[data-cardsync-covers]')") is None
    theirs.close()
    page.bring_to_front()
    assert page_pictures.picture(page, its).content.startswith(b"\x89PNG")


@pytest.mark.night
def test_the_agent_rests_between_actions_and_can_be_stopped(runner: Runner) -> None:
    runner.site.pages["/"] = html("<a href=#a>Go</a>")
    its = runner.pack({"go": {"text": "Go"}}, goto("/"), click("go"))
    runner.pace = _paced(QUICK, rest_least=0.3, rest_most=0.4)
    began = clock.monotonic()
    runner.run(its)
    assert clock.monotonic() - began >= 0.6

    class Stopped(Exception):
        pass

    def stop(seconds: float) -> None:
        raise Stopped

    tools = Tools(
        runner.browser, its, runner.folder, runner.pace,
        Turns(its, QUICK, lambda turn: None, stop, lambda title, text: None), stop,
    )  # fmt: skip
    with pytest.raises(Stopped):
        perform(tools, "export_inventory")


def _paced(pace: HumanPace, **new: float) -> HumanPace:
    return replace(pace, **new)


@pytest.mark.night
def test_a_question_of_the_page_is_answered_with_no_and_said(runner: Runner) -> None:
    ask = "if (confirm('Delete all?')) document.body.insertAdjacentHTML('beforeend', '<i id=ok>x</i>')"
    runner.site.pages["/"] = html(f'<button onclick="{ask}">Go</button>')
    go = click("go", changes=True, then={"visible": "ok", "within": 1})
    with pytest.raises(StepNotDone, match="the page asked a question, which"):
        runner.run(runner.pack(PARTS, goto("/"), go))


@pytest.mark.night
def test_every_trouble_says_where_it_was(runner: Runner) -> None:
    runner.site.pages["/"] = html("<p>")
    with pytest.raises(Trouble) as lost:
        runner.run(runner.pack({"go": BUTTON}, goto("/"), click("go", changes=True)))
    where = (lost.value.workflow, lost.value.step, lost.value.changed)
    assert where == ("export_inventory", "press_go", False)


SECRETS_OF_A_PAGE = (
    "<script>const token = 'T0KEN'</script><style>.x { color: red }</style>"
    "<input name=q value=typed><textarea>written</textarea><p class=buyer>Ada Lovelace</p>"
    "<a href='/mail?to=ada@example.com'>ada@example.com</a><input type=hidden name=csrf value=C5RF>"
)
EXPORT = {
    "locators": [{"css": "#export"}],
    "looks": {"tag": "button", "text": "Export CSV", "around": "Pricing"},
}


# A buyer in attributes: of the masked element itself, around it, in its row, and in a button.
NAMED_ELSEWHERE = (
    "<ul><li data-name='Grace Hopper' aria-label='Order of Grace Hopper'><a class=buyer"
    " title='Grace Hopper' href='/buyers/Grace%20Hopper?zip=75001'>Grace Hopper</a>"
    "<img alt='Photo of Linus' src=/linus.png><input type=submit class=buyer value='Grace Hopper'>"
    "<button class=cancel aria-label='Cancel for Grace Hopper'>Cancel</button></li></ul>"
    "<form action='/mail/Grace+Hopper'><button>Write</button></form>"
)


def test_no_attribute_names_a_masked_person(runner: Runner) -> None:
    runner.site.pages["/"] = html(f"{NAMED_ELSEWHERE}<button class=new>Export as CSV</button>")
    its = runner.pack({"export": EXPORT, "buyer": {"css": ".buyer"}}, goto("/"), masked=["buyer"])
    runner.run(its)
    part = page_snippet.snippet(runner.browser.page(), its, "export", its.elements["export"])
    assert '<button class="new">Export as CSV</button>' in part
    assert '<button class="cancel" aria-label="Cancel for …">Cancel</button>' in part
    for secret in ("Grace", "Hopper", "Linus", "linus", "75001"):
        assert secret not in part, part


def test_the_part_of_an_unknown_page_names_nobody(runner: Runner) -> None:
    body = "".join(UNKNOWN.values()) + "<img alt='Photo of Ada'><a href=/x title=Ada>Export</a>"
    body += "<i>06 12 34 56 78</i><a href=/orders/3/report.csv>Orders of the last 90 days</a>"
    runner.site.pages["/"] = html(f"{body}<h2>My orders</h2><a class=new>Save report as CSV</a>")
    its = runner.pack({"export": EXPORT, "lost": TO_RECORD}, goto("/"), masked=["lost"])
    runner.run(its)
    part = page_snippet.snippet(runner.browser.page(), its, "export", its.elements["export"])
    for shown in (
        '<a class="new">Save report as CSV</a>', "<h2>My orders</h2>", ">Export</a>",
        '<a href="/orders/3/report.csv">Orders of the last 90 days</a>',
    ):  # fmt: skip
        assert shown in part, part
    for secret in ("Ada", "Lovelace", "Elm", "Paris", "A-1", "12 34"):
        assert secret not in part, part


@pytest.mark.night
def test_the_part_of_a_page_around_a_lost_element_has_no_secrets(runner: Runner) -> None:
    rows = "".join(f"<tr><td>Card {n} \u00e4\u00f6</td><td>{n}</td></tr>" for n in range(3_000))
    table = f"<table>{rows}</table>"
    button = "<section><h2>Pricing</h2><button class=new>Export as CSV</button></section>"
    hidden = "<div style='display:none'><b>closed</b></div>"
    its = runner.pack({"export": EXPORT, "buyer": {"css": ".buyer"}}, goto("/"), masked=["buyer"])
    for body in (
        f"{SECRETS_OF_A_PAGE}{hidden}{button}",
        f"<main>{table}<div>{SECRETS_OF_A_PAGE}{button}{hidden}</div>{table}</main>",
    ):
        runner.site.pages["/"] = html(body)
        runner.run(its)
        before = runner.browser.page().content()
        part = page_snippet.snippet(runner.browser.page(), its, "export", its.elements["export"])
        assert runner.browser.page().content() == before
        assert len(part.encode()) <= 64_000
        assert '<button class="new">Export as CSV</button>' in part
        assert "<div hidden>" in part
        for secret in ("T0KEN", "typed", "written", "Ada", "example.com", "C5RF", "color"):
            assert secret not in part

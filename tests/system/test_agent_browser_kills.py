"""kill -9 of the agent and of its browser in the middle of a workflow: the next start finds the
browser with its session, or starts it anew, and the workflow is done whole.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.system.agent_pages import CSV, Answer, Site, a_file, a_pack, click, goto, html, step
from tests.system.workflow_runner import Runner, a_browser, chromium

import schedule
from cardsync_agent.browser.find_browser import Found
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import BrowserGone, NoBrowser, Trouble
from cardsync_agent.workflow.pack import Pack

# Real browsers take their time: the night runs them.
pytestmark = [
    pytest.mark.night,
    schedule.whole_night,
    pytest.mark.skipif(chromium is None, reason="there is no browser"),
]

ELEMENTS = {"get": {"text": "Get"}, "rows": {"css": "#rows"}, "more": {"text": "More"}}

# Performs the workflow and is killed at its n-th step; says what the next one needs to know.
AGENT = """
import json, os, signal, sys
from pathlib import Path
from random import Random
import msgspec
from cardsync_agent import clock
from cardsync_agent.browser.find_browser import Found
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.your_turn import Turns
from cardsync_agent.workflow.pack import read
from cardsync_agent.workflow.perform import Tools, perform

home, chromium, kill_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
its = read((home / "pack.json").read_bytes())
seen = 0

def pause(seconds):
    global seen
    seen += 1
    if seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    clock.sleep(seconds)

browser = SellersBrowser(Found(chromium, "Chromium", "chromium"), home / "browser", headless=True)
pace = HumanPace(rest_least=0, rest_most=0, element=2)
turns = Turns(its, pace, lambda turn: None, pause, lambda title, text: None)
tools = Tools(browser, its, home / "downloads", pace, turns, pause)
outcome = perform(tools, "export_inventory")
cookies = [one["name"] for one in browser.page().context.cookies()]
print(json.dumps({
    "file": outcome.file("inventory").read_text(), "cookies": cookies,
    "tabs": len(browser.page().context.pages), "seen": seen,
}))
browser.release()
"""


def its_pack(site: Site) -> Pack:
    return a_pack(
        site.origin, ELEMENTS,
        [goto("/list", visible="rows"), click("more", then={"url": "/more"}),
         step("download", "get", {"file": "inventory"}, element="get", file="inventory")],
    )  # fmt: skip


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    made.pages |= {
        "/list": html("<i id=rows>1 row</i><a href=/more>More</a>", **{"Set-Cookie": "session=1"}),
        "/more": html("<a href=/x.csv>Get</a>"), "/x.csv": slow_file,
    }  # fmt: skip
    yield made
    made.close()


def slow_file() -> Answer:
    time.sleep(1)
    return a_file()


@pytest.fixture
def home(tmp_path: Path, site: Site) -> Iterator[Path]:
    import msgspec

    (tmp_path / "pack.json").write_bytes(msgspec.json.encode(its_pack(site)))
    yield tmp_path
    for process in browsers_of(tmp_path):
        process.kill()


def browsers_of(home: Path) -> list[psutil.Process]:
    """The main processes of the browsers that a test started, by its own profile folder."""
    mark = f"--user-data-dir={home / 'browser'}"
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if mark in line and not any(part.startswith("--type=") for part in line):
            found.append(process)
    return found


def run_agent(home: Path, kill_at: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AGENT, str(home), str(chromium), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.day
def test_a_killed_agent_finds_its_browser_again_and_does_the_workflow_whole(home: Path) -> None:
    pids: set[int] = set()
    for kill_at in (2, 9):
        killed = run_agent(home, kill_at)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not list(home.glob("downloads/*.csv"))
        pids |= {process.pid for process in browsers_of(home)}
    ended = run_agent(home)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert said["seen"] > 9
    assert (said["file"].encode(), said["cookies"], said["tabs"]) == (
        CSV.replace(b"\r\n", b"\n"), ["session"], 1,
    )  # fmt: skip
    assert {process.pid for process in browsers_of(home)} == pids
    assert len(pids) == 1
    assert (home / "browser").stat().st_mode & 0o777 == 0o700
    assert not list((home / "downloads" / ".part").iterdir())


@pytest.mark.day
def test_a_killed_browser_is_started_again_in_the_same_agent(home: Path, site: Site) -> None:
    browser = a_browser(home / "browser")
    runner = Runner(browser, site, home)
    try:
        for name, kills in KILLS.items():
            killed: list[str] = []

            def kill(kills: Callable[[str], bool] = kills, killed: list[str] = killed) -> None:
                if not killed and kills(site.asked[-1]):
                    killed.append(site.asked[-1])
                    for process in browsers_of(home):
                        process.kill()
                        process.wait(10)

            watch_answers(site, kill)
            with pytest.raises(Trouble) as gone:
                runner.run(its_pack(site))
            assert isinstance(gone.value, BrowserGone), (name, gone.value)
            assert gone.value.may_try_again
            assert runner.run(its_pack(site)).file("inventory").read_bytes() == CSV
    finally:
        browser.quit()


KILLS: dict[str, Callable[[str], bool]] = {
    "while a page comes": lambda asked: asked == "GET /list",
    "after a click": lambda asked: asked == "GET /more",
    "in a download": lambda asked: asked == "GET /x.csv",
}


def watch_answers(site: Site, kill: Callable[[], None]) -> None:
    def killing(answer: Answer) -> Callable[[], Answer]:
        def made() -> Answer:
            kill()
            return answer

        return made

    site.pages["/list"] = killing(html("<i id=rows>1 row</i><a href=/more>More</a>"))
    site.pages["/more"] = killing(html("<a href=/x.csv>Get</a>"))
    site.pages["/x.csv"] = killing(a_file())


def test_a_killed_driver_is_started_again(home: Path, site: Site) -> None:
    browser = a_browser(home / "browser")
    runner = Runner(browser, site, home)
    try:
        runner.run(its_pack(site))
        pids = {process.pid for process in browsers_of(home)}
        for process in psutil.Process().children(recursive=True):
            if "run-driver" in process.cmdline():
                process.kill()
        assert runner.run(its_pack(site)).file("inventory").read_bytes() == CSV
        assert {process.pid for process in browsers_of(home)} == pids
    finally:
        browser.quit()


def test_a_stale_port_file_and_another_program_on_its_port_are_no_browser(
    home: Path, site: Site
) -> None:
    profile = home / "browser"
    profile.mkdir()
    site.pages["/json/version"] = Answer(b'{"webSocketDebuggerUrl": "ws://127.0.0.1/other"}')
    port = site.origin.rpartition(":")[2]
    for content in (f"{port}\n/devtools/browser/1", "9\n/devtools/browser/1", "", "x\ny"):
        (profile / "DevToolsActivePort").write_text(content)
        assert not a_browser(profile).is_running()
    browser = a_browser(profile)
    try:
        assert browser.page().url == "about:blank"
        assert browser.is_running()
    finally:
        browser.quit()
    assert not browser.is_running()


def test_the_agent_leaves_other_tabs_alone_and_opens_its_own_again(home: Path, site: Site) -> None:
    browser = a_browser(home / "browser")
    try:
        page = browser.page()
        other = page.context.new_page()
        other.goto(f"{site.origin}/more")
        page.close()
        Runner(browser, site, home).run(its_pack(site))
        assert other.url == f"{site.origin}/more"
        assert len(other.context.pages) == 2
        ours = browser.page().url
        browser.release()
        assert browser.page().url == ours == f"{site.origin}/more"
        assert len(browser.page().context.pages) == 2
    finally:
        browser.quit()


def test_a_program_that_is_no_browser_is_one_clear_sentence(tmp_path: Path) -> None:
    for path, reason in ((Path("/bin/false"), "ended at once"), (tmp_path, "cannot be started")):
        browser = SellersBrowser(Found(path, "Chrome", "chrome"), tmp_path / "browser")
        try:
            with pytest.raises(NoBrowser, match=f"Chrome {reason}"):
                browser.page()
        finally:
            browser.release()


def test_without_playwright_there_is_one_clear_sentence(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['playwright.sync_api'] = None\n"
        "from pathlib import Path\n"
        "from cardsync_agent.browser.find_browser import Found\n"
        "from cardsync_agent.browser.start_browser import SellersBrowser\n"
        "SellersBrowser(Found(Path('x'), 'x', 'given'), Path(sys.argv[1])).page()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.stderr.strip().endswith(
        "NoBrowser: driving a browser needs the extra: install cardsync-agent[browser]"
    )
    assert list(tmp_path.iterdir()) == []

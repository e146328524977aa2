"""`cardsync demo`: a stranger's first minute."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from tests.system.processes import PROGRAM, Server, a_folder, processes_of, told, until

from builders import read_csv
from cardsync_agent.commands.checks import key_trouble
from cardsync_agent.shops.settings_file import key_of as key_of_shop
from cardsync_agent.shops.settings_file import read_settings
from cardsync_agent.workflow.pack_folder import packs_of_program
from cardsync_demo.order_texts import ORDERS


@pytest.fixture(scope="module")
def ground() -> Iterator[tuple[Server, str, float]]:
    """A place whose path holds spaces, what the first run printed, and how long it took."""
    with a_folder() as folder:
        place = Server(folder, folder / "my first cards")
        began = time.monotonic()
        ran = subprocess.run(
            [*PROGRAM, "demo", "--exit", "--data-dir", str(place.data_dir)], env=place.env,
            capture_output=True, text=True,
            timeout=300, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        yield place, ran.stdout, time.monotonic() - began


def key_of(story: str) -> str:
    found = re.search(r"^key  (csk_\w+)$", story, re.MULTILINE)
    assert found, story
    return found[1]


def test_the_first_run_tells_the_whole_story(ground: tuple[Server, str, float]) -> None:
    place, story, _ = ground
    counts = re.search(
        r"(\d+) rows read: (\d+) matched, (\d+) provisional, (\d+) rejected, (\d+) duplicate", story
    )
    assert counts, story
    rows, matched, provisional, rejected, _ = map(int, counts.groups())
    assert rows >= 250
    assert matched > 200
    assert provisional > 0
    assert rejected > 0
    assert len(re.findall(r"^    line \d+: .+ \([a-z_]+\)$", story, re.MULTILINE)) == rejected
    priced = re.search(r"(\d+) priced, (\d+) changed", story)
    assert priced, story
    assert 0 < int(priced[2]) <= int(priced[1]) <= rows
    assert f"the first ten of {priced[2]} price changes" in story
    changes = re.findall(r"^ +([\d.]+|-) → +([\d.]+)  (.+) · (.+)\n +(\S.+)$", story, re.MULTILINE)
    assert len(changes) == 10
    assert all(old != new and len(why) > 10 for old, new, _, _, why in changes)
    saved = re.search(r"(\d+) price updates saved: (.+\.csv)$", story, re.MULTILINE)
    assert saved, story
    assert saved[1] == priced[2]
    exported = read_csv(Path(saved[2]).read_bytes())
    assert len(exported) == int(saved[1])
    assert Path(saved[2]).is_relative_to(place.data_dir)
    assert f"URL  {place.url}" in story
    assert "cycle reported: success" in story
    key_of(story)


def test_the_first_run_shows_the_market_and_what_it_recommends(
    ground: tuple[Server, str, float],
) -> None:
    _, story, _ = ground
    assert re.search(r"\d+ sales, \d+ listings and 0 prices are new", story), story
    told = re.search(r"(\d+) prices are recommended:", story)
    assert told, story
    assert int(told[1]) > 0
    waits = re.search(r"(\d+) prices rise further than the limit and wait for a look", story)
    assert waits, story
    assert int(waits[1]) > 0


def test_the_first_run_tells_what_became_of_the_orders(ground: tuple[Server, str, float]) -> None:
    _, story, _ = ground
    sent = {
        what: int(count)
        for count, what in re.findall(
            r"sent (\d+) ([a-z ]+) from [\w-]+\.csv$", story, re.MULTILINE
        )
    }
    assert (sent["orders"], sent["shipping rows"]) == (ORDERS, ORDERS)
    assert f"order-list.csv, line {ORDERS + 2}: a quote is misplaced or never closed" in story
    assert f"what became of {ORDERS} orders" in story
    assert f"{sent['items']} lines belong to their orders, 0 found none" in story
    assert re.search(
        r"^  shipping  \d+ in a plain envelope, \d+ tracked, \d+ expedited$", story, re.MULTILINE
    ), story
    refunds = re.search(
        r"^  refunds   (\d+) of [\d.]+ \(full, .+\), (\d+) of [\d.]+ \(partial, .+\)$",
        story,
        re.MULTILINE,
    )
    assert refunds, story
    assert int(refunds[1]) + int(refunds[2]) == sent["refunds"]
    assert f"  feedback  {sent['feedback rows']} orders" in story
    # Twelve whole months, and thirteen where the shop opened on the first of one.
    assert re.search(
        r"^  sales     [\d.]+ USD from \d+ orders this month, .+; 1[23] monthly reports, ",
        story,
        re.MULTILINE,
    ), story
    assert re.search(r"^─* ?a basket of [2-6] cards over the network", story, re.MULTILINE), story
    assert len(re.findall(r"^  .+: \d cards?, postage \d+\.\d+$", story, re.MULTILINE)) >= 2, story
    assert re.search(r"^  [\d.]+ with postage; ", story, re.MULTILINE), story
    assert "Example Street" not in story


def test_it_left_no_process(ground: tuple[Server, str, float]) -> None:
    place, _, _ = ground
    assert not processes_of(place.data_dir), told(processes_of(place.data_dir))


def sign_in(place: Server, story: str) -> None:
    """Sign in with what the story says, and look at some pages."""
    assert f"{place.url}/sign-in" in story
    email, password = (
        re.search(rf"{name} +(\S+)$", story, re.MULTILINE) for name in ("email", "password")
    )
    assert email
    assert password
    with httpx.Client(base_url=place.url) as http:
        signed = http.post("/api/session", json={"email": email[1], "password": password[1]})
        assert signed.is_success, signed.text
        for path in ("/today", "/cards", "/pricing", "/network", "/operator"):
            assert http.get(path).status_code == 200, path


def the_agent_can_work(place: Server, story: str) -> None:
    """The settings of the browser's shop lead to this server and to the marketplace beside it."""
    told = re.search(r"cardsync-agent run --config (.+)$", story, re.MULTILINE)
    assert told, story
    [shop] = read_settings(Path(told[1])).shops
    assert (shop.server, shop.adapter) == (place.url, "browser")
    assert shop.browser is not None
    assert shop.browser.marketplace == "simulated"
    [origin] = json.loads((packs_of_program() / "simulated" / "pack.json").read_text())["origins"]
    assert origin in story
    assert httpx.get(f"{origin}/_state").json()["imports"] == []
    assert key_trouble(shop.server, key_of_shop(shop)) is None


@pytest.mark.day
@pytest.mark.night
def test_a_second_run_serves_the_same_seller_until_ctrl_c(
    ground: tuple[Server, str, float],
) -> None:
    """Only here does a demo run on, and beside it the marketplace of `--marketplace`."""
    place, story, first_seconds = ground
    output = place.folder / "second.log"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [*PROGRAM, "demo", "--marketplace", "--data-dir", str(place.data_dir)], env=place.env,
            stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        serving = "Serving until Ctrl-C."
        until(
            lambda: serving in output.read_text(),
            lambda: f"the server: {output.read_text()}",
            max(90, 3 * first_seconds),
        )
        key = key_of(output.read_text())
        assert key == key_of(story)
        answer = httpx.get(
            f"{place.url}/api/v1/export/price-updates", headers={"Authorization": f"Bearer {key}"}
        )
        assert len(read_csv(answer.content)) > 10
        [read_on] = re.findall(r'Bearer (\w+)" "(\S+/api/orders\S+)"', output.read_text())
        page = httpx.get(read_on[1], headers={"Authorization": f"Bearer {read_on[0]}"}).json()
        assert {order["refund_type"] for order in page["orders"]} == {"full", "partial"}
        # Each item has its price of the day, and together they are what the order came to.
        for order in page["orders"]:
            prices = [Decimal(item["unit_price"]) * item["quantity"] for item in order["items"]]
            assert sum(prices) == Decimal(order["product_amt"]), order
        assert "rows read" not in output.read_text()  # the cycle is not run again
        sign_in(place, output.read_text())
        the_agent_can_work(place, output.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, output.read_text()
    finally:
        process.kill()
    assert "Traceback" not in output.read_text()
    until(
        lambda: not processes_of(place.data_dir),
        lambda: f"the end of {told(processes_of(place.data_dir))}",
    )


@pytest.mark.night
def test_a_public_demo_is_made_anew_at_night() -> None:
    """What this alone would find (five minutes): that a night really undoes what visitors changed,
    that the shop of the night is made while the old one still answers, and is no other's.
    """
    with a_folder() as folder:
        place = Server(folder, folder / "public")
        night = datetime.now(UTC) + timedelta(seconds=180)
        command = [*PROGRAM, "demo", "--public", "--undo-at", f"{night:%H:%M:%S}"]
        with subprocess.Popen(
            [*command, "--data-dir", str(place.data_dir)], env=place.env, text=True,
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        ) as demo, httpx.Client(base_url=place.url) as visitor:  # fmt: skip
            try:
                until(lambda: answers(visitor), "the public demo", pause=1)
                assert datetime.now(UTC) < night, "the first shop took too long"
                look_around(visitor)
                made = visitor.post("/api/lists", json={"name": "Until tonight"})
                assert made.status_code == 201, made.text
                webhook = {"url": "https://example.com/hook", "kinds": ["price_changes"]}
                refused = visitor.post("/api/webhooks", json=webhook)
                assert (refused.status_code, refused.json()["code"]) == (403, "public_demo")
                assert lists(visitor) == ["Until tonight"]
                while datetime.now(UTC) < night:
                    assert answers(visitor, "/api/lists")
                    time.sleep(1)
                # The session ends with its shop.
                until(lambda: answers(visitor, "/api/lists", 401), "the next shop", 300, 2)
                look_around(visitor)
                assert lists(visitor) == []
                assert len(list((place.data_dir / "public-demo").iterdir())) == 1
            finally:
                demo.send_signal(signal.SIGTERM)
                demo.wait(60)


def answers(http: httpx.Client, path: str = "/sign-in", status: int = 200) -> bool:
    try:
        return http.get(path).status_code == status
    except httpx.TransportError:
        return False


def look_around(http: httpx.Client) -> None:
    """Sign in as the button of a public demo's sign-in page does."""
    page = http.get("/sign-in").text
    form = dict(re.findall(r'name="(email|password)" value="([^"]+)"', page))
    assert http.post("/sign-in", data=form).headers["Location"] == "/today"
    http.headers["X-CSRF-Token"] = http.get("/api/session").json()["csrf_token"]


def lists(http: httpx.Client) -> list[str]:
    return [one["name"] for one in http.get("/api/lists").json()["lists"]]

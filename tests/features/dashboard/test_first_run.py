"""The first run over HTTP: who may set the installation up, and what comes of it."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest
from sqlalchemy import exists, select, text

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.access.models import Seller
from cardsync.shop.accounts import first_run, set_up_link

_numbers = itertools.count(1)


@pytest.fixture
def fresh(monkeypatch):
    """The fields of a set-up, in an installation whose only seller would be its own: the database
    of the tests holds the sellers of others.
    """
    email = f"first-{next(_numbers)}@example.invalid"

    async def is_open(session):
        return not await session.scalar(select(exists().where(Seller.email == email)))

    monkeypatch.setattr(first_run, "is_open", is_open)
    return {"store_name": "Ann's", "name": "Ann", "email": email, "password": "a long password"}


def words(page):
    """The text of a page, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.text).split())


def client(service, address="127.0.0.1", **headers):
    return service.client(address, **headers)


@pytest.fixture
def token(service):
    """The token of the link that `serve` prints."""
    return set_up_link.link(service.settings).partition("?token=")[2]


@pytest.mark.night
async def test_it_makes_a_shop_in_review_mode_signs_in_and_is_gone(service, fresh, token):
    async with client(service) as http:
        page = await http.get(f"/set-up?token={token}")
        assert "Create store" in page.text
        assert f'value="{token}"' in page.text
        answer = await http.post("/set-up", data=fresh | {"token": token})
        assert answer.headers["location"] == "/set-up/prices"
        account = (await http.get("/api/account")).json()
        assert (account["sync_mode"], account["store_name"]) == ("read_only", "Ann's")
        session = (await http.get("/api/session")).json()
        assert session["member"]["name"] == "Ann"
        assert (await http.get("/api/keys")).json()["keys"] == []
        assert (await http.get(f"/set-up?token={token}")).status_code == 404
        again = await http.post("/set-up", data=fresh | {"token": token})
        assert again.status_code == 404
        page = await http.get("/set-up/prices")
        assert 'enctype="multipart/form-data"' in page.text


async def test_of_two_who_set_it_up_at_once_one_makes_the_shop(service, fresh, token):
    async with client(service) as http:
        form = fresh | {"token": token}
        answers = await asyncio.gather(*(http.post("/set-up", data=form) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [303, 404, 404]


async def test_what_cannot_be_read_stays_in_the_form(service, fresh, token):
    async with client(service) as http:
        for name, wrong in (("email", "nobody"), ("password", "short"), ("name", " ")):
            answer = await http.post("/set-up", data=fresh | {"token": token, name: wrong})
            assert answer.status_code == 422
            assert 'value="Ann&#39;s"' in answer.text
            assert 'aria-invalid="true"' in answer.text
        assert (await http.get(f"/set-up?token={token}")).status_code == 200


async def test_a_request_without_the_token_is_refused_whatever_machine_it_seems_to_come_from(
    service, fresh
):
    """A bare proxy_pass names the loopback as the host and forwards no header."""
    for host in ("127.0.0.1:8000", "localhost", "shop.example"):
        async with client(service, Host=host) as http:
            for wrong in ("", "wrong"):
                refused = await http.get(f"/set-up?token={wrong}")
                assert refused.status_code == 403
                assert "cardsync set-up-link" in refused.text
                answer = await http.post("/set-up", data=fresh | {"token": wrong})
                assert answer.status_code == 403


async def test_a_token_of_the_settings_is_the_one_that_opens_it(service, fresh, token, monkeypatch):
    settings = service.settings.model_copy(update={"set_up_token": "the-token"})
    monkeypatch.setattr(service.app.state, "settings", settings)
    async with client(service, "192.0.2.7") as http:
        assert (await http.get(f"/set-up?token={token}")).status_code == 403
        answer = await http.post("/set-up", data=fresh | {"token": "the-token"})
        assert answer.status_code == 303


async def test_without_a_shop_the_first_page_says_where_the_link_is(service, fresh, token):
    async with client(service) as http:
        http.follow_redirects = True
        page = await http.get("/")
        assert "cardsync set-up-link" in page.text
        assert "password" not in page.text
        assert token not in page.text
        await http.post("/set-up", data=fresh | {"token": token})
        http.cookies.clear()
        assert 'type="password"' in (await http.get("/")).text


async def test_another_site_sets_nothing_up(service, fresh):
    async with client(service, Origin="https://elsewhere.example") as http:
        assert (await http.post("/set-up", data=fresh)).status_code == 403


async def test_once_there_is_a_seller_it_is_not_there(a_seller):
    seller = await a_seller()
    http = seller.service.client()
    assert (await http.get("/set-up")).status_code == 404
    assert (await http.post("/set-up", data={"name": "x"})).status_code == 404


async def test_a_pricing_export_is_taken_as_a_file_and_its_report_shown(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    token = {"csrf_token": browser.session["csrf_token"]}
    rows = [a_row(1, name="<b>Black</b> Lotus"), a_row(2, quantity="many")]
    file = {"file": ("export.csv", a_csv(*rows), "text/csv")}
    answer = await browser.http.post("/set-up/prices", data=token, files=file)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    waiting = (await browser.get(path)).text
    assert "Reading your file" in waiting
    again = 'data-hx-trigger="every 1s"'
    assert again in waiting
    # A script asks again by itself.
    assert "Reload this page" in waiting
    assert "Reload this page" not in re.sub(r"<noscript>.*?</noscript>", "", waiting, flags=re.S)
    await seller.service.run_jobs()
    page = await browser.get(path)
    assert again not in page.text
    number = re.findall(r"\d+$", path)[0]
    report = (await browser.get(f"/api/v1/uploads/{number}")).json()
    assert (report["rows"], report["new"], report["rejected_count"]) == (2, 1, 1)
    told = words(page)
    for said in ("2 rows read", "1 card is new", "1 row skipped", "In stock 1", "of 1"):
        assert said in told, said
    again = await seller.import_csv(a_csv(rows[0]))
    assert again["new"] == 0
    assert "is new" not in words(await browser.get(path.replace(number, str(again["id"]))))


@pytest.mark.night
async def test_the_first_look_says_what_the_shop_has_and_what_its_price_file_changes(a_seller):
    seller = await a_seller(sync_mode="read_only")
    browser = await signed_in(seller)
    rows = [
        a_row(1, name="Riser", price="10.00", market="11.00", quantity=3),
        a_row(2, name="<b>Small</b> riser", price="1.00", market="1.05", quantity=2),
        a_row(3, name="On target", price="0.99", market="1.00"),
        a_row(4, name="Gone", price="4.00", market="9.00", quantity=0),
        a_row(5, name="New", price="", market="5.00"),
    ]
    report = await seller.import_csv(a_csv(*rows))
    for path in (f"/set-up/uploads/{report['id']}", "/set-up/prices", "/set-up/agent"):
        page = await browser.get(path)
        told = words(page)
        assert "In stock 4 cards, 7 copies" in told
        assert "Listed value $32.99 at your prices" in told
        assert "Market value $41.10" in told
        assert "2 increases, 0 decreases, 1 first price" in told
        assert "1 card out of stock" in told
        cards = (await browser.get("/api/cards?search=Riser&sort=price&direction=desc")).json()
        assert f'src="/img/cards/{cards["cards"][0]["id"]}/small"' in page.text
        assert "<b>Small" not in page.text
        assert 'href="/api/pricing/updates.csv"' in page.text
        # The file comes after the strategy.
        assert told.index("Choose a pricing strategy") < told.index("Download the price file")
    file = (await browser.get("/api/pricing/updates.csv")).text
    assert len(file.splitlines()) == 4
    # Staff may not see what the shop is worth.
    staff = await joined(seller, f"staff-{seller.email}")
    assert "32.99" not in (await staff.get(f"/set-up/uploads/{report['id']}")).text


@pytest.mark.night
async def test_a_file_can_be_dropped_and_is_sent_by_the_form_alone_too(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    report = await seller.import_csv(a_csv(a_row(1), a_row(2, quantity="many")))
    for path in ("/set-up/prices", f"/sync/uploads/{report['id']}"):
        page = (await browser.get(path)).text
        form = re.search(r'<form class="drop".*?</form>', page, re.S)[0]
        assert 'enctype="multipart/form-data"' in form
        assert re.search(r'<input id="f-file" name="file" type="file" required', form)
        assert re.search(r"data-scripts>Drag a file", form)
        assert "js/drop" in page


async def test_a_first_import_says_that_no_catalog_is_installed_and_what_is_out_of_stock(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    async with seller.service.database.shared() as session:
        # Earlier tests of the process may have loaded one.
        await session.execute(text("DELETE FROM catalog_import"))
    # No test loads a catalog of this game.
    line = "Star Wars: Unlimited"
    stock = [a_row(1, line=line), *(a_row(n, line=line, quantity=0) for n in (2, 3))]
    report = await seller.import_csv(a_csv(*stock))
    assert (report["catalog_loaded"], report["priced"]) == (False, 1)
    paths = [f"{place}/uploads/{report['id']}" for place in ("/set-up", "/sync")]
    for path in paths:
        page = " ".join((await browser.get(path)).text.split())
        assert f"No catalog for {line} is installed" in page
        assert "1 listing is not matched to a product yet" in page
        assert "Prices work without one" in page
        assert "out of stock (2 cards)" in page or "<b>2 cards</b> out of stock" in page
    async with seller.service.database.shared() as session:
        loaded = (
            "INSERT INTO catalog_name (game, name_key, own, words, printings)"
            " VALUES ('star_wars_unlimited', 'x', '', '', 1)"
        )
        await session.execute(text(loaded))
    for path in paths:
        assert "No catalog for" not in (await browser.get(path)).text
    async with seller.service.database.shared() as session:
        gone = "DELETE FROM catalog_name WHERE game = 'star_wars_unlimited' AND name_key = 'x'"
        await session.execute(text(gone))


async def test_a_file_without_its_token_or_of_staff_is_refused(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    file = {"file": ("export.csv", a_csv(a_row(1)), "text/csv")}
    assert (await owner.http.post("/set-up/prices", files=file)).status_code == 403
    token = {"csrf_token": staff.session["csrf_token"]}
    assert (await staff.http.post("/set-up/prices", data=token, files=file)).status_code == 403
    assert (await staff.get("/set-up/prices")).status_code == 403
    token = {"csrf_token": owner.session["csrf_token"]}
    for wrong in ({"file": ("a.csv", b"no table", "text/csv")}, {"other": ("a", b"", "text/csv")}):
        answer = await owner.http.post("/set-up/prices", data=token, files=wrong)
        assert answer.status_code == 422
        assert "Error: " in answer.text


async def test_the_presets_show_the_figures_of_the_preview_and_one_is_chosen(a_seller):
    seller = await a_seller(sync_mode="read_only")
    browser = await signed_in(seller)
    assert "before you choose" in (await browser.get("/set-up/presets")).text
    rows = [a_row(n, name=f"<b>Card</b> {n}", price="1.03", market="9.77") for n in range(1, 14)]
    await seller.import_csv(a_csv(*rows))
    page = await browser.get("/set-up/presets")
    assert "<b>Card" not in page.text
    compared = (await browser.get("/api/pricing/presets")).json()["presets"]
    assert [each["preset"] for each in compared] == ["premium", "competitive", "move", "buy-box"]
    choices = re.findall(r'<label><input type="radio" name="preset".*?</label>', page.text, re.S)
    panes = re.findall(r'<div class="pane p\d.*?</table>', page.text, re.S)
    for each, choice, pane in zip(compared, choices, panes, strict=True):
        told = each["preview"]
        up, down = told["up"] - told["held_up"], told["down"] - told["held_down"]
        stay = told["cards"] - up - down - told["held"]
        parts = f"{up} up, {down} down, {stay} stay, {told['held']} limited"
        assert parts in " ".join(choice.split())
        widths = re.findall(r'width="([0-9.]+)%" height="10"></rect>', choice)
        assert round(sum(map(float, widths))) == 100
        assert f"${told['listed_value_after']}" in choice
        assert len(re.findall("<tr><th", pane)) - 1 == len(told["largest"]) <= 10
        # The limit of a day, 1.1845, is an amount of the API and no amount of a page.
        assert not re.search(r"\d\.\d{3}", pane)
    assert "1.1845" in compared[1]["preview"]["largest"][0]["reason"]
    rules = [{"name": "Premium", "price_source": "market", "fallback_sources": ["low"]}]
    rules[0] |= {"adjust_bp": 500, "never_lower": True, "priority": 1000}
    rules[0]["cap"] = {"up_bp": 1500, "down_bp": 1500, "period": "day"}
    rules[0]["cap"]["small"] = {"below": "5.00", "up_bp": 1000, "down_bp": 1000}
    alone = await browser.post("/api/pricing/preview", json={"rules": rules})
    same = ("up", "down", "held", "listed_value_before", "listed_value_after")
    assert [alone.json()[name] for name in same] == [compared[0]["preview"][n] for n in same]
    chosen = await browser.form("/set-up/presets", preset="premium")
    assert chosen.headers["location"].startswith("/set-up/agent")
    assert "are being priced" in (await browser.get("/set-up/agent")).text
    await seller.service.run_jobs()
    assert "in use" in (await browser.get("/set-up/presets")).text
    assert "Download the price file" in (await browser.get("/set-up/agent")).text
    file = await browser.get("/api/pricing/updates.csv")
    assert file.text == (await seller.export()).text
    assert len(file.text.splitlines()) == 14
    assert (await browser.form("/set-up/presets", preset="none")).status_code == 404


async def test_the_agents_command_is_shown_once_and_its_first_heartbeat_turns_it_green(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert "Not connected yet" in (await browser.get("/set-up/agent")).text
    assert (await browser.form("/set-up/agent", name=" ")).status_code == 422
    made = await browser.form("/set-up/agent", name="Laptop")
    keys = re.findall(r"CARDSYNC_AGENT_KEY[^c]*(csk_\w+)", made.text)
    assert len(keys) == 4
    [key] = set(keys)
    assert "works only on this computer" in made.text
    assert key not in (await browser.get("/set-up/agent")).text
    http = seller.service.client(Authorization=f"Bearer {key}")
    assert (await http.post("/api/v1/heartbeat", json={})).status_code == 200
    assert "Connected " in (await browser.get("/set-up/agent")).text


@pytest.mark.parametrize("path", ["/set-up/presets", "/set-up/agent"])
async def test_the_steps_are_the_owners_and_need_the_forms_token(a_seller, path):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    fields = {"preset": "premium", "name": "Laptop"}
    assert (await staff.get(path)).status_code == 403
    assert (await staff.form(path, **fields)).status_code == 403
    assert (await owner.http.post(path, data=fields)).status_code == 403
    free = await signed_in(await a_seller(plan="free"))
    assert "A new key needs a paid plan" in (await free.get("/set-up/agent")).text


async def test_staff_gets_no_price_file_and_no_comparison(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    for path in ("/api/pricing/presets", "/api/pricing/updates.csv"):
        assert (await staff.get(path)).json()["code"] == "owner_required"


async def test_a_card_is_left_out_of_the_price_file_and_nothing_is_approved_to_nobody(a_seller):
    seller = await a_seller(sync_mode="read_only")
    browser = await signed_in(seller)
    rows = [a_row(1, name="Riser", price="1.00"), a_row(2, name="Other", price="2.00")]
    await seller.import_csv(a_csv(*(row | {"TCG Market Price": "9.00"} for row in rows)))
    page = await browser.get("/sync/prices")
    assert "The sync app isn't connected" in words(page)
    assert "Approve this file" not in page.text
    said = await browser.form("/sync/approve", approved="true")
    assert "sent once a sync app is connected" in words(await browser.get(said.headers["location"]))
    [riser] = (await browser.get("/api/cards?search=riser")).json()["cards"]
    assert f'value="{riser["id"]}" aria-label="Select Riser"' in page.text
    kept = await browser.form("/cards/pin", card_ids=riser["id"], back="/sync/prices")
    assert kept.headers["location"].startswith("/sync/prices?done=")
    left = await browser.get(kept.headers["location"])
    assert "Riser" not in left.text
    assert "Other" in left.text
    file = (await browser.get("/api/pricing/updates.csv")).text
    assert len(file.splitlines()) == 2

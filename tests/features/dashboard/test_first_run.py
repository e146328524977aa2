"""The first run over HTTP: who may set the installation up, and what comes of it."""

from __future__ import annotations

import itertools
import re

import httpx
import pytest
from sqlalchemy import exists, select

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.access.models import Seller
from cardsync.accounts import first_run

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


def client(service, address="127.0.0.1", **headers):
    transport = httpx.ASGITransport(
        app=service.app, client=(address, 1), raise_app_exceptions=False
    )
    return httpx.AsyncClient(transport=transport, base_url=service.settings.origin, headers=headers)


async def test_it_makes_a_shop_in_review_mode_signs_in_and_is_gone(service, fresh):
    async with client(service) as http:
        assert "Set up and sign in" in (await http.get("/set-up")).text
        answer = await http.post("/set-up", data=fresh)
        assert answer.headers["location"] == "/set-up/prices"
        account = (await http.get("/api/account")).json()
        assert (account["sync_mode"], account["store_name"]) == ("read_only", "Ann's")
        session = (await http.get("/api/session")).json()
        assert session["member"]["name"] == "Ann"
        assert (await http.get("/api/keys")).json()["keys"] == []
        assert (await http.get("/set-up")).status_code == 404
        again = await http.post("/set-up", data=fresh)
        assert again.status_code == 404
        page = await http.get("/set-up/prices")
        assert 'enctype="multipart/form-data"' in page.text


async def test_what_cannot_be_read_stays_in_the_form(service, fresh):
    async with client(service) as http:
        for name, wrong in (("email", "nobody"), ("password", "short"), ("name", " ")):
            answer = await http.post("/set-up", data=fresh | {name: wrong})
            assert answer.status_code == 422
            assert 'value="Ann&#39;s"' in answer.text
            assert 'aria-invalid="true"' in answer.text
        assert (await http.get("/set-up")).status_code == 200


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", {}),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}),
        ("127.0.0.1", {"Host": "shop.example"}),
    ],
)
async def test_strangers_are_let_in_by_the_token_alone(
    service, fresh, monkeypatch, address, headers
):
    settings = service.settings.model_copy(update={"set_up_token": "the-token"})
    monkeypatch.setattr(service.app.state, "settings", settings)
    async with client(service, address, **headers) as http:
        assert (await http.get("/set-up")).status_code == 403
        assert (await http.get("/set-up?token=wrong")).status_code == 403
        assert (await http.post("/set-up", data=fresh)).status_code == 403
        page = await http.get("/set-up?token=the-token")
        assert 'value="the-token"' in page.text
        answer = await http.post("/set-up", data=fresh | {"token": "the-token"})
        assert answer.status_code == 303


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
    rows = [a_row(1, name="<b>Black</b> Lotus"), a_row(2, price="much")]
    file = {"file": ("export.csv", a_csv(*rows), "text/csv")}
    answer = await browser.http.post("/set-up/prices", data=token, files=file)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    assert "being read" in (await browser.get(path)).text
    await seller.service.run_jobs()
    page = await browser.get(path)
    assert "The file is read." in page.text
    number = re.findall(r"\d+$", path)[0]
    report = (await browser.get(f"/api/v1/uploads/{number}")).json()
    for name, key in (
        ("Rows read", "rows"),
        ("Matched", "matched"),
        ("Rejected", "rejected_count"),
    ):
        assert re.search(rf"<dt>{name}</dt>\s*<dd>{report[key]}<", page.text), name


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

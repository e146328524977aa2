"""The people, the keys and the data of an account over the API, as their owner has them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from datetime import timedelta

import polars as pl
import pytest

from browsers import A_PASSWORD, accept, joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.platform import clock
from cardsync.shop.accounts import export_entries


async def test_an_owner_invites_changes_and_removes_people(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    body = {"email": f"bea-{seller.email}", "role": "staff"}
    made = (await owner.post("/api/members/invitations", json=body)).json()
    token = made["invite_url"].rpartition("/")[2]
    _, bea = await accept(seller.service, token, name="Bea", password=A_PASSWORD)
    members = (await owner.get("/api/members")).json()["members"]
    assert [(m["role"], m["joined"]) for m in members] == [("owner", True), ("staff", True)]
    path = f"/api/members/{made['member_id']}"
    changed = await owner.send("PATCH", path, json={"role": "owner"})
    assert (changed.status_code, changed.json()["role"]) == (200, "owner")
    assert (await owner.send("PATCH", path, json={"role": "boss"})).status_code == 422
    assert (await owner.send("DELETE", f"{path}/sessions")).status_code == 200
    assert not await bea.is_in()
    again = await owner.post(f"{path}/link")
    assert again.json()["invite_url"] != made["invite_url"]
    assert (await owner.send("DELETE", path)).json() == {"deleted": True}
    assert (await owner.send("DELETE", path)).status_code == 404
    last = await owner.send("DELETE", f"/api/members/{owner.member_id}")
    assert last.status_code == 422
    assert "only owner" in last.json()["error"]


async def test_the_link_for_a_new_password_is_good_once_for_a_day_and_ends_the_sessions(
    a_seller, monkeypatch
):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    path = f"/api/members/{bea.member_id}/link"
    token = (await owner.post(path)).json()["invite_url"].rpartition("/")[2]
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=24, seconds=1))
    late, _ = await accept(seller.service, token, password=A_PASSWORD)
    assert late.status_code == 404
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=23, minutes=59))
    first, _ = await accept(seller.service, token, password="another good password")
    second, _ = await accept(seller.service, token, password=A_PASSWORD)
    assert (first.status_code, second.status_code) == (201, 404)
    monkeypatch.undo()
    assert not await bea.is_in()
    await signed_in(seller, f"bea-{seller.email}", "another good password")
    assert (await bea.post(path)).status_code == 401


async def test_members_of_another_account_are_not_there(a_seller):
    seller, other = await a_seller(), await a_seller()
    owner, stranger = await signed_in(seller), await signed_in(other)
    path = f"/api/members/{stranger.member_id}"
    answers = [
        await owner.send("PATCH", path, json={"role": "staff"}),
        await owner.send("DELETE", path),
        await owner.send("DELETE", f"{path}/sessions"),
        await owner.post(f"{path}/link"),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    taken = {"email": other.email, "role": "owner"}
    assert (await owner.post("/api/members/invitations", json=taken)).status_code == 422
    assert await stranger.is_in()
    key = (await stranger.post("/api/keys", json={"name": "Theirs"})).json()["id"]
    assert (await owner.send("DELETE", f"/api/keys/{key}")).status_code == 404


async def test_a_key_is_told_once_and_useless_once_revoked(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    made = (await owner.post("/api/keys", json={"name": " Lap  top "})).json()
    headers = {"Authorization": f"Bearer {made['api_key']}"}
    assert (await seller.service.client(**headers).get("/api/v1/status")).status_code == 200
    listed = await owner.get("/api/keys")
    assert made["api_key"] not in listed.text
    assert listed.json()["keys"][-1]["name"] == "Lap top"
    assert (await owner.send("DELETE", f"/api/keys/{made['id']}")).json()["revoked_at"]
    assert (await seller.service.client(**headers).get("/api/v1/status")).status_code == 401
    assert (await owner.post("/api/keys", json={"name": " "})).status_code == 422


async def test_an_unpaid_plan_makes_no_key_and_says_why(a_seller):
    seller = await a_seller(plan="free")
    owner = await signed_in(seller)
    answer = await owner.post("/api/keys", json={"name": "Laptop"})
    assert (answer.status_code, answer.json()["code"]) == (403, "paid_plan_required")
    assert (await owner.get("/api/keys")).json()["why_none"] == answer.json()["error"]


async def test_an_account_that_is_about_to_be_deleted_makes_no_key(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    asked = await owner.post("/api/account/deletion", json={"confirm": seller.email})
    assert asked.status_code == 200, asked.text
    owner = await signed_in(seller)
    answer = await owner.post("/api/keys", json={"name": "Laptop"})
    assert (answer.status_code, answer.json()["code"]) == (409, "account_ending")
    assert (await owner.get("/api/keys")).json()["why_none"] == answer.json()["error"]
    told = (await owner.get("/api/today")).json()["conditions"]
    assert told[0]["kind"] == "account_to_be_deleted"
    assert "This account is about to be deleted" in (await owner.get("/settings/keys")).text
    form = {"csrf_token": owner.session["csrf_token"], "name": "Laptop"}
    assert (await owner.http.post("/settings/keys", data=form)).status_code == 409
    assert (await owner.send("DELETE", "/api/account/deletion")).status_code == 200
    assert (await owner.post("/api/keys", json={"name": "Laptop"})).status_code == 201


@pytest.mark.parametrize("rows", [20_000, 2])
async def test_all_data_comes_as_one_zip(a_seller, monkeypatch, rows):
    monkeypatch.setattr(export_entries, "ROWS_AT_ONCE", rows)
    seller, other = await a_seller(), await a_seller()
    for each in (seller, other):
        await each.import_csv(a_csv(*(a_row(n, name=f'"Card", {n}\n') for n in range(1, 6))))
        await each.import_csv(a_csv(*(a_row(n, price="3.00") for n in range(1, 6))))
    await seller.orders([an_order(order_number=f"O-{n}") for n in range(3)])
    made = (await seller.post("/api/lists", json={"name": "Binder"})).json()["id"]
    ids = [card["id"] for card in await seller.cards()]
    await seller.post(f"/api/lists/{made}/cards", json={"card_ids": ids})
    owner = await signed_in(seller)
    [customer, *_] = (await owner.get("/api/customers")).json()["customers"]
    note = {"note": "Prefers sleeves"}
    noted = await owner.send("PUT", f"/api/customers/{customer['key']}/note", json=note)
    assert noted.status_code == 200, noted.text
    lots = [{"marketplace_id": n, "quantity": 1} for n in range(1, 6)]
    assert (await owner.post("/api/buying/lots", json={"lots": lots})).status_code == 201
    assert (await owner.post("/api/buying/presets/standard")).status_code == 200
    fees = {"csv": "Order,Fees\nO-0,1.00\nO-1,1.50\nO-2,2.00\n"}
    assert (await owner.post("/api/buying/payments", json=fees)).status_code == 200
    box = b"Titel;Menge\nLone Hawk;2\n"
    asked = await seller.post("/api/buying/collections", params={"name": "b"}, content=box)
    assert asked.status_code == 202, asked.text
    answer = await owner.get("/api/export/everything")
    assert answer.headers["content-type"].startswith("application/zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        assert file.testzip() is None
        sheets = {
            name: list(csv.DictReader(io.StringIO(file.read(name).decode())))
            for name in file.namelist()
            if name.endswith(".csv")
        }
        tables = {
            name.removesuffix(".parquet"): pl.read_parquet(file.read(name))
            for name in file.namelist()
            if name.endswith(".parquet")
        }
        *named, last = file.namelist()
        said = json.loads(file.read(last))["files"]
        assert (last, list(said)) == ("manifest.json", named)
        for name, line in said.items():
            data = file.read(name)
            assert line == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert {f"{name}.csv" for name in tables} == set(sheets)
    for name, rows_of in sheets.items():
        table = tables[name.removesuffix(".csv")]
        assert table.height == len(rows_of), name
        assert rows_of == [] or list(rows_of[0]) == table.columns, name
    cards = tables["cards"]
    assert cards["id"].to_list() == [int(card["id"]) for card in sheets["cards.csv"]]
    assert cards["product_name"].to_list() == [c["product_name"] for c in sheets["cards.csv"]]
    assert [str(p) for p in cards["price"]] == [card["price"] for card in sheets["cards.csv"]]
    assert cards.schema["updated_at"] == pl.Datetime("us", "UTC")
    assert cards.schema["gone"] == pl.Boolean
    assert [int(card["id"]) for card in sheets["cards.csv"]] == sorted(ids)
    assert len(sheets["orders.csv"]) == 3
    assert {row["card_id"] for row in sheets["list_cards.csv"]} == {str(n) for n in ids}
    assert len(sheets["price_history.csv"]) == 5
    assert sheets["lists.csv"][0]["name"] == "Binder"
    assert [row["marketplace_id"] for row in sheets["lots.csv"]] == ["1", "2", "3", "4", "5"]
    assert {row["order_number"] for row in sheets["payments.csv"]} == {"O-0", "O-1", "O-2"}
    assert len(sheets["buy_rules.csv"]) == len(sheets["collections.csv"]) == 1
    assert {"collection_rows.csv", "buy_rule_tests.csv", "sold_from_lots.csv"} <= sheets.keys()
    assert len(sheets["activity.csv"]) > 1
    assert [row["note"] for row in sheets["customer_notes.csv"]] == ["Prefers sleeves"]
    assert sheets["pricing_rules.csv"]
    assert sheets["listed_value.csv"]
    assert sheets["price_runs.csv"]


async def test_the_archive_holds_what_waits_and_what_was_held_out(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    market = {"name": "At market", "state": "published"}
    # Chance draws cards of the first rule alone.
    drawn_of = market | {"query": "price<5", "priority": 1, "holdout_bp": 2_000}
    for rule in (drawn_of, market | {"priority": 2}):
        assert (await owner.post("/api/pricing/rules", json=rule)).status_code == 201
    limits = {"review_up_bp": 5_000}
    answer = await owner.send("PATCH", "/api/pricing/settings", json=limits)
    assert answer.status_code == 200, answer.text
    dear = a_row(100, price="10.00", market="90.00")
    await seller.import_csv(
        a_csv(dear, *(a_row(n, price="1.00", market="1.20") for n in range(1, 41)))
    )
    answer = await owner.get("/api/export/everything")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        waits = list(csv.DictReader(io.StringIO(file.read("price_reviews.csv").decode())))
        drawn = list(csv.DictReader(io.StringIO(file.read("price_holdouts.csv").decode())))
    assert [(row["marketplace_id"], row["proposed_price"]) for row in waits] == [("100", "90.0000")]
    assert {row["held"] for row in drawn} == {"t", "f"}


async def test_staff_and_keys_are_refused(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    for path in ("/api/members", "/api/keys", "/api/export/everything"):
        assert (await staff.get(path)).json()["code"] == "owner_required"
        assert (await seller.get(path)).json()["code"] == "session_required"

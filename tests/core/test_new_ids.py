"""The ids of another installation in the place of the old ones, wherever a row names them."""

from __future__ import annotations

import polars as pl
import pytest

from cardsync.operations.moving.new_ids import NewIds
from cardsync.stock.cards.chosen_match import KIND
from cardsync.tables import metadata

IDS = NewIds(
    7,
    90,
    {"member": {0: 0, 3: 31}, "api_key": {5: 51}, "access_token": {6: 61}, "passkey": {}},
    {"member": 39, "api_key": 59, "access_token": 69},
    pl.DataFrame(
        {"old": [1, 2], "new": [1001, 1002], "match": [None, "provisional"]},
        schema={"old": pl.Int64, "new": pl.Int64, "match": pl.String},
    ),
)


def mapped(table: str, **cells: object) -> dict[str, object]:
    [row] = IDS.mapped(metadata.tables[table], pl.DataFrame([cells])).rows(named=True)
    return row


PRODUCTS = '{"was": 1, "became": 2, "kind": "%s"}'
MATCHED = '{"was": 1001, "became": 1002, "kind": "%s"}'


@pytest.mark.parametrize(
    ("column", "was", "now"),
    [
        ("actor", "member 3", "member 31"),
        ("actor", "key 5", "key 51"),
        ("actor", "token 6", "token 61"),
        # Nobody gets the id of one who left.
        ("actor", "member 4", "member 39"),
        # The ids of grants are the shop's own.
        ("actor", "grant 3", "grant 3"),
        ("actor", "operator", "operator"),
        ("summary", "member 3 made key 5 of 31 cards", "member 31 made key 51 of 31 cards"),
        ("request_id", "member 3", "member 3"),
        ("after", '{"made_by": "member 3"}', '{"made_by": "member 31"}'),
        ("after", '{"note": "ask member 3", "by": ""}', '{"note": "ask member 3", "by": ""}'),
        ("undo", '{"product_id": 2, "card": 2}', '{"product_id": 1002, "card": 2}'),
        ("undo", '{"member_id": 3, "id": 3}', '{"member_id": 31, "id": 3}'),
        ("undo", PRODUCTS % "other", PRODUCTS % "other"),
        ("undo", PRODUCTS % KIND, MATCHED % KIND),
    ],
)
def test_texts_name_those_who_are_here(column: str, was: str, now: str) -> None:
    assert mapped("activity", **{column: was})[column] == now


def test_a_key_that_is_replaced_is_the_same_key_here() -> None:
    assert mapped("api_key", id=5, replaces=5) == {"id": 51, "replaces": 51}
    # One that was deleted is replaced by none.
    assert mapped("api_key", id=5, replaces=4) == {"id": 51, "replaces": None}


def test_stored_objects_are_of_the_shop_here() -> None:
    key = mapped("upload", storage_key="accepted/u7/a.csv", source_key="syncs/u8/b.csv")
    assert key == {"storage_key": "accepted/u90/a.csv", "source_key": "syncs/u8/b.csv"}
    summary = '{"receipts": "receipts/u7/3-x.parquet", "other": "/u77/"}'
    assert mapped("price_run", summary=summary)["summary"] == summary.replace("/u7/", "/u90/")


def test_a_card_is_of_the_product_here_and_matched_again_where_that_is_new() -> None:
    known = mapped("card", product_id=1, match="matched", contributed_by=0)
    assert known == {"product_id": 1001, "match": "matched", "contributed_by": 0}
    new = mapped("card", product_id=2, match="matched", contributed_by=3)
    assert new == {"product_id": 1002, "match": "provisional", "contributed_by": 31}


def test_one_who_left_keeps_an_id_that_no_member_has() -> None:
    assert mapped("card_columns", member_id=0)["member_id"] == 0
    assert mapped("card_columns", member_id=3)["member_id"] == 31
    assert mapped("card_columns", member_id=4)["member_id"] == -4

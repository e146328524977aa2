"""Shops in the network and small catalogs, with names that no other test has."""

from __future__ import annotations

import uuid
from typing import Any

import polars as pl
import pytest

from builders import a_csv
from cardsync.catalog.load_catalog import load
from cardsync.network.offers import OFFERS
from discovery_builder import change


@pytest.fixture
def tag():
    """A word that no other test's names have: the catalog is shared by all sellers."""
    return "q" + "".join(chr(ord("a") + int(digit, 16)) for digit in uuid.uuid4().hex[:10])


@pytest.fixture
def catalog(service, tmp_path):
    """`await catalog(("Charizard", "Base Set", "4/102", "Holofoil", 41), …)` loads printings."""

    async def made(*printings: tuple[Any, ...], game: str = "pokemon") -> None:
        names = ("product_name", "set_name", "number", "finish", "product_id")
        rows = [dict(zip(names, row, strict=False)) | {"game": game} for row in printings]
        frame = pl.DataFrame(rows, schema=dict.fromkeys(("game", *names), pl.String), strict=False)
        frame = frame.with_columns(pl.col("product_id").cast(pl.Int64))
        path = tmp_path / f"{uuid.uuid4().hex}.parquet"
        frame.write_parquet(path)
        await load(service.database, path, "auto", None, lambda _: None)

    return made


@pytest.fixture
def a_shop(a_seller, service):
    """`await a_shop("Alpha", row, …)` is a seller in the network with this stock."""

    async def made(store: str | None, *rows: dict[str, str], **account: Any) -> Any:
        seller = await a_seller()
        if rows:
            await seller.import_csv(a_csv(*rows))
        # Most tests see what the cards cost: without steps a parcel has an estimated postage.
        switches = {
            "network_consent": True, "network_published": True, "store_name": store,
            "postage_steps": "0:0",
        }  # fmt: skip
        await change(service, seller, **(switches | account))
        await OFFERS.work_off(service.work, seller.id)
        return seller

    return made

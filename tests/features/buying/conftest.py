"""A shop that buys by the standard preset."""

import pytest

from builders import a_row, a_shop
from offers_builder import buys


@pytest.fixture
async def seller(a_seller):
    rows = [a_row(id, name=f"Bolt {id}", market=f"{id}.00", price=f"{id}.00") for id in (10, 20)]
    seller = await a_shop(a_seller, *rows)
    await buys(seller)
    return seller

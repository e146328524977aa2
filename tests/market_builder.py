"""Rows of market evidence, as `cardsync market import` reads them: the columns are product,
condition, printing, language, price, quantity, sold_at, fetched_at and seen_at.
"""

from __future__ import annotations

from datetime import timedelta

import psycopg

from builders import Seller
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url

HEADER = "product_id,condition,printing,language,price,quantity,sold_at,fetched_at,observed_at\n"


def ago(**span: float) -> str:
    """A moment so long before now, as RFC 3339: `ago(hours=1)`."""
    return clock.rfc3339(clock.now() - timedelta(**span))


def listing(product: int, price: str, seen: str, quantity: int = 1, condition: str = "NM") -> str:
    return f"{product},{condition},Normal,English,{price},{quantity},,,{seen}"


def sale(product: int, price: str, sold: str, fetched: str, quantity: int = 1) -> str:
    return f"{product},NM,Normal,English,{price},{quantity},{sold},{fetched},"


def in_the_market(owner_url: str, seller: Seller, products: dict[int, int]) -> None:
    """Let the catalog know these cards, by `marketplace_id`, as products of the marketplace."""
    asked = "SELECT product_id FROM card WHERE seller_id = %s AND marketplace_id = %s"
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        for card, product in products.items():
            ours = connection.execute(asked, [seller.id, card]).fetchone()
            assert ours is not None
            connection.execute(
                "UPDATE product SET marketplace_product_id = %s WHERE id = %s", [product, ours[0]]
            )

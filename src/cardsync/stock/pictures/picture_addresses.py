"""Finds the address of a card's picture: what its catalog names, else what the marketplace shows by
the product's id; and the seller's own photo. In SQL over `product` and `card`.

A `Photo URL` never decides what other sellers see: a seller could put any picture beside any card.
An address in the marketplace's own form (`/product/<id>_`) only says which of the marketplace's
pictures it is, so that picture is shared; which card it belongs to stays that seller's word.
"""

from __future__ import annotations

import re
from typing import Final

MARKETPLACE_HOST: Final = "tcgplayer-cdn.tcgplayer.com"
_OF_ID: Final = f"'https://{MARKETPLACE_HOST}/product/' || {{id}} || '_400w.jpg'"
_OWN_FORM: Final = rf"^https://{MARKETPLACE_HOST}/product/([0-9]{{1,18}})_".replace(".", "[.]")

# The address of the picture of the product `p`; `q` is the product that adopted a provisional one.
OF_PRODUCT: Final = f"""
    coalesce(p.picture_url, q.picture_url,
             {_OF_ID.format(id="coalesce(p.marketplace_product_id, q.marketplace_product_id)")})
"""
# The address of the marketplace's picture that the photo of the card `c` names; null for a photo of
# the seller's own.
OF_MARKETPLACE: Final = _OF_ID.format(id=f"substring(c.photo_url FROM '{_OWN_FORM}')")
LONGEST: Final = 500
HOST: Final = "^https?://([^/]+)/"


def host(address: str) -> str:
    """Return the host of an address, in SQL; null for a text that is no address of a page."""
    return f"substring({address} FROM '{HOST}')"


def host_in(address: str) -> str | None:
    """Return the same of an address."""
    found = re.match(HOST, address)
    return found[1] if found else None


def read_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts that a setting lists by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())

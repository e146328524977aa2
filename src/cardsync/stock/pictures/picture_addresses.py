"""Finds the address of a card's picture, in SQL over `product` and `card`: the catalog's picture,
else the marketplace's picture for the product's id; and the seller's own photo.

A `Photo URL` never decides which picture other sellers see, because a seller could name any picture
for any card. An address in the marketplace's own form (`/product/<id>_`) names one of the
marketplace's pictures, so that picture is shared; but only that seller's cards use it.
"""

from __future__ import annotations

import re
from typing import Final

MARKETPLACE_HOST: Final = "tcgplayer-cdn.tcgplayer.com"
_OF_ID: Final = f"'https://{MARKETPLACE_HOST}/product/' || {{id}} || '_400w.jpg'"
_OWN_FORM: Final = rf"^https://{MARKETPLACE_HOST}/product/([0-9]{{1,18}})_".replace(".", "[.]")

# The address of the picture of the product `p`; `q` is the product that adopted `p`, if `p` is
# provisional.
OF_PRODUCT: Final = f"""
    coalesce(p.picture_url, q.picture_url,
             {_OF_ID.format(id="coalesce(p.marketplace_product_id, q.marketplace_product_id)")})
"""
# The address of the marketplace's picture that the photo of the card `c` names; null for the
# seller's own photo.
OF_MARKETPLACE: Final = _OF_ID.format(id=f"substring(c.photo_url FROM '{_OWN_FORM}')")
LONGEST: Final = 500
HOST: Final = "^https?://([^/]+)/"


def host(address: str) -> str:
    """Return the SQL expression for the host of an address; it is null for a text that is no
    URL.
    """
    return f"substring({address} FROM '{HOST}')"


def host_in(address: str) -> str | None:
    """Return the host of an address; None for a text that is no URL."""
    found = re.match(HOST, address)
    return found[1] if found else None


def read_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a comma-separated setting."""
    return tuple(part.strip() for part in text.split(",") if part.strip())

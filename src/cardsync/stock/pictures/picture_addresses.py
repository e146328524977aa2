"""SQL expressions for the addresses of a card's pictures, over `product` and `card`: the catalog's
picture, else the marketplace's picture for the product's id; and the seller's own photo.

A `Photo URL` never decides which picture other sellers see, because a seller could enter any
picture for any card. If a `Photo URL` has the form of the marketplace's own addresses
(`/product/<id>_`), the picture is stored once for all sellers, but shown only with that seller's
card.
"""

from __future__ import annotations

import re
from typing import Final

MARKETPLACE_HOST: Final = "tcgplayer-cdn.tcgplayer.com"
_OF_ID: Final = f"'https://{MARKETPLACE_HOST}/product/' || {{id}} || '_400w.jpg'"
_OWN_FORM: Final = rf"^https://{MARKETPLACE_HOST}/product/([0-9]{{1,18}})_".replace(".", "[.]")

# The address of the picture of the product `p`. If `p` is provisional, `q` is the catalog product
# that replaced `p`.
OF_PRODUCT: Final = f"""
    coalesce(p.picture_url, q.picture_url,
             {_OF_ID.format(id="coalesce(p.marketplace_product_id, q.marketplace_product_id)")})
"""
# The address of the marketplace's picture, if the `Photo URL` of the card `c` names one; null if it
# names a photo of the seller.
OF_MARKETPLACE: Final = _OF_ID.format(id=f"substring(c.photo_url FROM '{_OWN_FORM}')")
LONGEST: Final = 500
HOST: Final = "^https?://([^/]+)/"


def host(address: str) -> str:
    """Return the SQL expression for the host of an address. Its value is null for a text that is no
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

"""Makes a buyer's link to a listing from the templates of the seller, the marketplace and the
operator. Pure.

A seller's own link is wrapped by the operator's affiliate template, and is never changed again.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from cardsync.platform.settings import Settings

PRODUCT = "{marketplace_product_id}"
WRAPPED = "{url}"
_LONGEST = 500


def listing_url_template(value: str) -> str:
    """Return a seller's template. Raises ValueError with what it takes."""
    text = value.strip()
    parts = urlsplit(text.replace(PRODUCT, "1"))
    if len(text) > _LONGEST or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an address like https://shop.example/product/{PRODUCT}, or nothing")
    if PRODUCT not in text or PRODUCT in (parts.netloc or ""):
        raise ValueError(f"an address that holds {PRODUCT}, or nothing")
    return text


def buy_url(
    product_id: int | None,
    of_seller: str | None,
    settings: Settings,
) -> str | None:
    """Return the link, or None for a product that the marketplace has no number for."""
    if product_id is None:
        return None
    link = (of_seller or settings.marketplace_product_url).replace(PRODUCT, str(product_id))
    affiliate = settings.affiliate_url_template
    return affiliate.replace(WRAPPED, quote(link, safe="")) if affiliate else link

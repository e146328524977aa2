"""Makes a buyer's link to a listing from the templates of the seller, the marketplace and the
operator. Pure.

The operator's affiliate template is applied to a seller's own link; the link has no other changes.
"""

from __future__ import annotations

from urllib.parse import quote

from cardsync.access.declared_settings import PRODUCT
from cardsync.platform.settings import Settings

WRAPPED = "{url}"


def buy_url(
    product_id: int | None,
    of_seller: str | None,
    settings: Settings,
) -> str | None:
    """Return the link, or None for a product without a marketplace id."""
    if product_id is None:
        return None
    link = (of_seller or settings.marketplace_product_url).replace(PRODUCT, str(product_id))
    affiliate = settings.affiliate_url_template
    return affiliate.replace(WRAPPED, quote(link, safe="")) if affiliate else link

"""Names the columns of the marketplace's pricing file, in its order."""

from __future__ import annotations

# Our name of a column → the marketplace's.
COLUMNS = {
    "listing_id": "TCGplayer Id",
    "product_line_label": "Product Line",
    "set_name": "Set Name",
    "product_name": "Product Name",
    "title": "Title",
    "number": "Number",
    "rarity": "Rarity",
    "condition_label": "Condition",
    "market": "TCG Market Price",
    "direct_low": "TCG Direct Low",
    "low_with_shipping": "TCG Low Price With Shipping",
    "low": "TCG Low Price",
    "quantity": "Total Quantity",
    "add_to_quantity": "Add to Quantity",
    "price": "TCG Marketplace Price",
    "photo_url": "Photo URL",
}


HEADER_ONLY = ",".join(COLUMNS.values()).encode() + b"\r\n"

"""Declares each setting of an account once: its column, who may change it, and its texts.

The columns of `account`, the structs of the API, the fields of pages, the operator's command and
the texts of the activity feed are made from these declarations. A new setting needs one declaration
here and a migration. An owner may change the settings that have a text for the API (`api`); an
operator may change the other settings.

A function that reads a setting's value raises ValueError with the expected format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Column
from sqlalchemy.orm import Mapped, MappedColumn, mapped_column

from cardsync.platform.database.columns import FALSE, TRUE
from cardsync.platform.declared_fields import Declared, Field
from cardsync.platform.limits import PLANS, STORE_NAME_CHARACTERS
from cardsync.platform.postage import postage_steps

PRODUCT: Final = "{marketplace_product_id}"
_INFO: Final = "setting"
_LONGEST_TEMPLATE: Final = 500
_QUIET_HOURS: Final = r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d"


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise ValueError("a time zone like America/New_York") from e
    return value


def _quiet_hours(value: str) -> str:
    if not re.fullmatch(_QUIET_HOURS, value):
        raise ValueError("a span like 22:00-06:00, or nothing")
    return value


def _listing_url_template(value: str) -> str:
    """Check a seller's template for the link to a listing, and return it. Raises ValueError."""
    text = value.strip()
    parts = urlsplit(text.replace(PRODUCT, "1"))
    if len(text) > _LONGEST_TEMPLATE or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an address like https://shop.example/product/{PRODUCT}, or nothing")
    if PRODUCT not in text or PRODUCT in (parts.netloc or ""):
        raise ValueError(f"an address that holds {PRODUCT}, or nothing")
    return text


def setting(own: Field | None = None, default: Any = None) -> MappedColumn[Any]:
    return mapped_column(server_default=default, info={_INFO: own or Field()})


def settings_of(columns: Iterable[Column[object]]) -> dict[str, Declared]:
    """Return the settings that the columns of a table declare, by name."""
    return {one.name: _declared(one, one.info[_INFO]) for one in columns if _INFO in one.info}


def _declared(column: Column[object], own: Field) -> Declared:
    kind = Literal.__getitem__(tuple(own.options)) if own.options else column.type.python_type
    return Declared(column.name, kind, bool(column.nullable), None, own)


class SettingsOfAccount:
    """The columns of `account` that are settings, in the order in which the API and the forms show
    them.
    """

    plan: Mapped[str] = setting(Field(options=dict.fromkeys(PLANS, "")))
    trial_ends_at: Mapped[datetime | None] = setting()
    suspended: Mapped[bool] = setting(default=FALSE)
    past_due: Mapped[bool] = setting(default=FALSE)
    full_history_requested: Mapped[bool] = setting(default=FALSE)
    credits_metering_enabled: Mapped[bool] = setting(default=FALSE)
    object_store_pipeline_enabled: Mapped[bool] = setting(default=TRUE)
    sync_mode: Mapped[str] = setting(
        Field(
            options={
                "full": "Full: new prices are sent automatically",
                "read_only": "Review Mode: you approve first",
            },
            section="sync",
            label="Mode",
            hint="In Review Mode, you see every new price and approve each price file.",
            api="full: the agent uploads the new prices. read_only (Review Mode): it saves the "
            "repriced file and does not upload it",
        ),
        "full",
    )
    sync_interval_minutes: Mapped[int | None] = setting(
        Field(
            30,
            60 * 24 * 366,
            takes="30 or more minutes, at most a year, or nothing for the default",
            section="sync",
            label="Minutes between syncs",
            hint="30 or more. Leave blank for the default.",
            api="From the end of one sync to the next, from 30 minutes on",
        )
    )
    quiet_hours: Mapped[str | None] = setting(
        Field(
            read=_quiet_hours,
            section="sync",
            label="Quiet hours",
            hint="No sync starts during these hours. For example 22:00-06:00.",
            api="No sync begins then, as 22:00-06:00 in the seller's time zone",
        )
    )
    time_zone: Mapped[str] = setting(
        Field(
            read=_time_zone,
            input="zone",
            section="shop",
            label="Time zone",
            hint="For example America/New_York. All times are in this zone.",
            api="A name of the IANA database, such as America/New_York",
        ),
        "America/New_York",
    )
    auto_sync_paused: Mapped[bool] = setting(
        Field(section="sync", label="Pause automatic syncs", api="No sync begins by itself"), FALSE
    )
    automatic_pricing_paused: Mapped[bool] = setting(
        Field(section="sync", label="Pause sending prices", api="No price changes by itself"), FALSE
    )
    planner_opt_in: Mapped[bool] = setting(
        Field(
            section="sync",
            label="Smart sync schedule",
            hint="Syncs more often when a lot sells, and less often when nothing changes.",
            api="The agent gets a plan of its steps",
        ),
        FALSE,
    )
    write_consent: Mapped[bool] = setting(
        Field(
            section="sync",
            label="Send prices to TCGplayer",
            hint="If off, nothing is sent.",
            api="The agent may change prices at the marketplace",
            feed="send prices to TCGplayer",
        ),
        TRUE,
    )
    upload_approved: Mapped[bool] = setting(
        Field(
            api="The seller approved one upload of the newest price file",
            feed="price file approved",
        ),
        FALSE,
    )
    ship_within_days: Mapped[int] = setting(
        Field(
            1,
            30,
            takes="working days, from 1 to 30",
            section="shop",
            label="Ship within",
            hint="Business days, for example 3. Today warns you before they run out.",
            api="Working days within which orders are sent",
        ),
        "3",
    )
    tracking_threshold: Mapped[Decimal] = setting(
        Field(
            section="shop",
            label="Require tracking at ($)",
            hint="Orders from this total up ship with tracking. For example 50.00.",
            api="Orders from this total on are tracked, in USD",
        ),
        "50",
    )
    # Without a weekly limit, the limit is a share of the listed value (prices/loss/loss_limits.py).
    loss_budget: Mapped[Decimal | None] = setting(
        Field(
            section="shop",
            label="Weekly limit for automatic price cuts ($)",
            hint="Above this, you approve. Leave blank for 5% of your listed value.",
            api="The most that keys, tokens and automatic changes take off in a week, in USD",
        )
    )
    # The way to compute the cost of a sold copy (sales/lots/settle_uses.py). The amounts in the
    # settings after it are the costs of sending an order.
    costing: Mapped[str] = setting(
        Field(
            options={"fifo": "First in, first out (FIFO)", "average": "Average cost"},
            section="shop",
            label="Cost method",
            hint="Used to calculate profit.",
            api="fifo: a sold copy is of the oldest lot. average: it costs the mean of all",
        ),
        "fifo",
    )
    letter_postage: Mapped[Decimal] = setting(
        Field(
            section="shop",
            label="Stamp cost per envelope ($)",
            hint="For example 0.73.",
            api="The postage of a letter, in USD",
        ),
        "0",
    )
    parcel_postage: Mapped[Decimal] = setting(
        Field(
            section="shop",
            label="Tracked shipping per order ($)",
            hint="For example 4.50.",
            api="The postage of a parcel, in USD",
        ),
        "0",
    )
    supplies: Mapped[Decimal] = setting(
        Field(
            section="shop",
            label="Supplies per order ($)",
            hint="Sleeves, envelope, label. For example 0.25.",
            api="The cost of envelopes and sleeves for an order, in USD",
        ),
        "0",
    )
    direct_program: Mapped[bool] = setting(
        Field(
            section="shop",
            label="This store is in TCGplayer Direct",
            api="The seller takes part in the marketplace's own program",
        ),
        FALSE,
    )
    staff_see_revenue: Mapped[bool] = setting(
        Field(
            section="shop",
            label="Staff can see sales and profit",
            hint="Sales, stock value and what customers spent. If off, only owners see them.",
            api="Staff see what the shop earns",
        ),
        FALSE,
    )
    attribution_logging: Mapped[bool] = setting(Field(api="Receipts of prices are kept"), TRUE)
    network_consent: Mapped[bool] = setting(
        Field(
            section="network",
            label="I agree to let network buyers find my stock",
            hint="If off, no one can see your stock.",
            api="The shop's stock may be shown to buyers",
            feed="network consent",
        ),
        FALSE,
    )
    network_published: Mapped[bool] = setting(
        Field(
            section="network",
            label="Share my listings",
            hint="Turn off for a vacation.",
            first=True,
            api="The shop's stock is shown to buyers",
            feed="stock shown to buyers",
        ),
        FALSE,
    )
    store_name: Mapped[str | None] = setting(
        Field(
            0,
            STORE_NAME_CHARACTERS,
            body=str,
            section="shop",
            label="Store name",
            hint="Your store name on TCGplayer.",
            first=True,
            api="The name by which buyers know the shop",
        )
    )
    listing_url_template: Mapped[str | None] = setting(
        Field(
            read=_listing_url_template,
            section="network",
            label="Listing link template",
            hint=f"Like https://shop.example/product/{PRODUCT}. Leave blank to link to TCGplayer.",
            api=f"The shop's own listing, with {PRODUCT} in it",
        )
    )
    postage_steps: Mapped[str | None] = setting(
        Field(
            read=postage_steps,
            section="network",
            label="Shipping rates",
            api="The postage by the value of the parcel, as 0:1.27,12:3.20",
            feed="shipping",
        )
    )

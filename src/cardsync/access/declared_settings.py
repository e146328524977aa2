"""Declares each setting of an account once: its column, who may change it, and its words.

The columns of `account`, the API's structs, the fields of the pages, the operator's command and the
words of the activity feed are made from these lines. A new setting needs one declaration here and a
migration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

from msgspec import UnsetType
from sqlalchemy import Column
from sqlalchemy.orm import Mapped, MappedColumn, mapped_column

from cardsync.access import setting_kinds as kinds
from cardsync.access.setting_kinds import AMOUNT, FLAG, MOMENT, TIME_ZONE, Kind
from cardsync.platform.database.columns import FALSE, TRUE
from cardsync.platform.limits import PLANS, STORE_NAME_CHARACTERS
from cardsync.platform.postage import postage_steps

_INFO: Final = "setting"


@dataclass(frozen=True)
class Place:
    """A page whose form has the setting, with the field's words on it."""

    page: Literal["shop", "sync", "network"]
    label: str
    hint: str = ""
    first: bool = False


@dataclass(frozen=True)
class Setting:
    """`nullable`: an empty text sets the default. `api` is the description in the API's
    documentation, `feed` the setting's name in the activity feed.
    """

    kind: Kind
    places: tuple[Place, ...]
    who: Literal["owner", "operator"]
    api: str
    feed: str
    name: str = ""
    nullable: bool = False

    @property
    def answer(self) -> Any:
        """The setting's type in an answer of the API."""
        return self.kind.answer | None if self.nullable else self.kind.answer

    @property
    def body(self) -> Any:
        """The setting's type in a change by the API."""
        kind = self.kind.body | UnsetType
        return kind | None if self.nullable else kind

    def read(self, value: str) -> Any:
        """Convert the typed text. Raises ValueError with the format that the setting takes."""
        return None if self.nullable and not value else self.kind.read(value)


def setting(
    kind: Kind,
    *places: Place,
    default: Any = None,
    who: Literal["owner", "operator"] = "owner",
    api: str = "",
    feed: str = "",
) -> MappedColumn[Any]:
    info = {_INFO: Setting(kind, places, who, api, feed)}
    return mapped_column(kind.column, server_default=default, info=info)


def settings_of(columns: Iterable[Column[Any]]) -> dict[str, Setting]:
    """Return the settings that a table's columns declare, by name."""
    return {
        column.name: replace(column.info[_INFO], name=column.name, nullable=bool(column.nullable))
        for column in columns
        if _INFO in column.info
    }


class SettingsOfAccount:
    """The columns of `account` that are settings, in the order of the API and the forms."""

    plan: Mapped[str] = setting(kinds.choice(**dict.fromkeys(PLANS, "")), who="operator")
    trial_ends_at: Mapped[datetime | None] = setting(MOMENT, who="operator")
    suspended: Mapped[bool] = setting(FLAG, default=FALSE, who="operator")
    past_due: Mapped[bool] = setting(FLAG, default=FALSE, who="operator")
    full_history_requested: Mapped[bool] = setting(FLAG, default=FALSE, who="operator")
    credits_metering_enabled: Mapped[bool] = setting(FLAG, default=FALSE, who="operator")
    object_store_pipeline_enabled: Mapped[bool] = setting(FLAG, default=TRUE, who="operator")
    sync_mode: Mapped[str] = setting(
        kinds.choice(
            full="Full: new prices are sent automatically",
            read_only="Review Mode: you approve first",
        ),
        Place(
            "sync",
            "Mode",
            "In Review Mode, you see every new price and approve each price file.",
        ),
        default="full",
        api="full: the agent uploads the new prices. read_only (Review Mode): it saves the "
        "repriced file and does not upload it",
    )
    sync_interval_minutes: Mapped[int | None] = setting(
        kinds.whole(
            30, 60 * 24 * 366, "30 or more minutes, at most a year, or nothing for the default"
        ),
        Place("sync", "Minutes between syncs", "30 or more. Leave blank for the default."),
        api="From the end of one sync to the next, from 30 minutes on",
    )
    quiet_hours: Mapped[str | None] = setting(
        kinds.words(kinds.quiet_hours),
        Place("sync", "Quiet hours", "No sync starts during these hours. For example 22:00-06:00."),
        api="No sync begins then, as 22:00-06:00 in the seller's time zone",
    )
    time_zone: Mapped[str] = setting(
        TIME_ZONE,
        Place("shop", "Time zone", "For example America/New_York. All times are in this zone."),
        default="America/New_York",
        api="A name of the IANA database, such as America/New_York",
    )
    auto_sync_paused: Mapped[bool] = setting(
        FLAG,
        Place("sync", "Pause automatic syncs"),
        default=FALSE,
        api="No sync begins by itself",
    )
    automatic_pricing_paused: Mapped[bool] = setting(
        FLAG,
        Place("sync", "Pause sending prices"),
        default=FALSE,
        api="No price changes by itself",
    )
    planner_opt_in: Mapped[bool] = setting(
        FLAG,
        Place(
            "sync",
            "Smart sync schedule",
            "Syncs more often when a lot sells, and less often when nothing changes.",
        ),
        default=FALSE,
        api="The agent gets a plan of its steps",
    )
    write_consent: Mapped[bool] = setting(
        FLAG,
        Place("sync", "Send prices to TCGplayer", "If off, nothing is sent."),
        default=TRUE,
        api="The agent may change prices at the marketplace",
        feed="send prices to TCGplayer",
    )
    upload_approved: Mapped[bool] = setting(
        FLAG,
        default=FALSE,
        api="The seller approved one upload of the newest price file",
        feed="price file approved",
    )
    ship_within_days: Mapped[int] = setting(
        kinds.whole(1, 30, "working days, from 1 to 30"),
        Place(
            "shop",
            "Ship within",
            "Business days, for example 3. Today warns you before they run out.",
        ),
        default="3",
        api="Working days within which orders are sent",
    )
    tracking_threshold: Mapped[Decimal] = setting(
        AMOUNT,
        Place(
            "shop",
            "Require tracking at ($)",
            "Orders from this total up ship with tracking. For example 50.00.",
        ),
        default="50",
        api="Orders from this total on are tracked, in USD",
    )
    # Without a budget, the limit is a share of the listed value (prices/loss/loss_limits.py).
    loss_budget: Mapped[Decimal | None] = setting(
        AMOUNT,
        Place(
            "shop",
            "Weekly limit for automatic price cuts ($)",
            "Above this, you approve. Leave blank for 5% of your listed value.",
        ),
        api="The most that keys, tokens and automatic changes take off in a week, in USD",
    )
    # How the cost of a sold copy is computed (sales/lots/settle_uses.py). The amounts below are the
    # cost of sending an order.
    costing: Mapped[str] = setting(
        kinds.choice(fifo="First in, first out (FIFO)", average="Average cost"),
        Place("shop", "Cost method", "Used to calculate profit."),
        default="fifo",
        api="fifo: a sold copy is of the oldest lot. average: it costs the mean of all",
    )
    letter_postage: Mapped[Decimal] = setting(
        AMOUNT,
        Place("shop", "Stamp cost per envelope ($)", "For example 0.73."),
        default="0",
        api="The postage of a letter, in USD",
    )
    parcel_postage: Mapped[Decimal] = setting(
        AMOUNT,
        Place("shop", "Tracked shipping per order ($)", "For example 4.50."),
        default="0",
        api="The postage of a parcel, in USD",
    )
    supplies: Mapped[Decimal] = setting(
        AMOUNT,
        Place("shop", "Supplies per order ($)", "Sleeves, envelope, label. For example 0.25."),
        default="0",
        api="The cost of envelopes and sleeves for an order, in USD",
    )
    direct_program: Mapped[bool] = setting(
        FLAG,
        Place("shop", "This store is in TCGplayer Direct"),
        default=FALSE,
        api="The seller takes part in the marketplace's own program",
    )
    staff_see_revenue: Mapped[bool] = setting(
        FLAG,
        Place(
            "shop",
            "Staff can see sales and profit",
            "Sales, stock value and what customers spent. If off, only owners see them.",
        ),
        default=FALSE,
        api="Staff see what the shop earns",
    )
    attribution_logging: Mapped[bool] = setting(
        FLAG, default=TRUE, api="Receipts of prices are kept"
    )
    network_consent: Mapped[bool] = setting(
        FLAG,
        Place(
            "network",
            "I agree to let network buyers find my stock",
            "If off, no one can see your stock.",
        ),
        default=FALSE,
        api="The shop's stock may be shown to buyers",
        feed="network consent",
    )
    network_published: Mapped[bool] = setting(
        FLAG,
        Place("network", "Share my listings", "Turn off for a vacation.", first=True),
        default=FALSE,
        api="The shop's stock is shown to buyers",
        feed="stock shown to buyers",
    )
    store_name: Mapped[str | None] = setting(
        kinds.short(STORE_NAME_CHARACTERS),
        Place("shop", "Store name", "Your store name on TCGplayer.", first=True),
        Place("network", "Store name", "As buyers see it."),
        api="The name by which buyers know the shop",
    )
    listing_url_template: Mapped[str | None] = setting(
        kinds.words(kinds.listing_url_template),
        Place(
            "network",
            "Listing link template",
            f"Like https://shop.example/product/{kinds.PRODUCT}. Leave blank to link to TCGplayer.",
        ),
        api=f"The shop's own listing, with {kinds.PRODUCT} in it",
    )
    postage_steps: Mapped[str | None] = setting(
        kinds.words(postage_steps),
        Place("network", "Shipping rates"),
        api="The postage by the value of the parcel, as 0:1.27,12:3.20",
        feed="shipping",
    )

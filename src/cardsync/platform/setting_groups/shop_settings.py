"""The settings of the features that an installation offers its shops, and of mail and webhooks."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field

from cardsync.platform.limits import PLANS
from cardsync.platform.postage import postage_steps


def _plan(text: str) -> str:
    if text not in PLANS:
        raise ValueError(f"it is one of {', '.join(PLANS)}")
    return text


def _demo(text: str) -> str:
    email, _, password = text.partition(":")
    if text and not ("@" in email and password):
        raise ValueError("it must be like demo@example.com:password")
    return text


def _contact(text: str | None) -> str | None:
    """Convert an email address to the URI that security.txt needs."""
    if not text:
        return None
    uri = text if re.match(r"https://|mailto:", text) else f"mailto:{text}"
    if not re.fullmatch(r"https://[^\s@/]+(/\S*)?|mailto:[^<>@\s]+@[^<>@\s]+", uri):
        raise ValueError("it must be like security@example.com or https://example.com/report")
    return uri


def _mail_server(url: str | None) -> str | None:
    """Check the URL. The error does not quote the URL, because the URL contains a password."""
    try:
        parts = urlsplit(url or "")
        good = parts.scheme in ("smtp", "smtps") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if url and not good:
        raise ValueError(
            "it must be like smtp://user:password@host:587 or smtps://user:password@host; in a"
            " password, what is no letter or digit is written like %40"
        )
    return url or None


def _mail_from(address: str | None) -> str | None:
    if address and not re.fullmatch(
        r"([^<>@\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)", address
    ):
        raise ValueError("it must be like notices@example.com or My Shop <notices@example.com>")
    return address or None


class Offered(BaseModel):
    default_plan: Annotated[str, AfterValidator(_plan)] = Field(
        "founder", description="Plan of a seller created without --plan"
    )
    credits_top_up: str = Field(
        "",
        description="How a seller gets more credits: a text or an address (https, mailto), for /account/credits",
    )
    marketplace_product_url: str = Field(
        "https://www.tcgplayer.com/product/{marketplace_product_id}",
        description="A product's page at the marketplace, for sellers without a link of their own",
    )
    affiliate_url_template: str | None = Field(
        None,
        description="Wraps every link of discovery; `{url}` is the link, percent-encoded",
    )
    price_write_limits: bool = Field(
        True,
        description="Prices that keys and tokens write outside plans are under the loss limits, and members confirm large changes; off only for scripts of your own",
    )
    default_postage_steps: Annotated[str, AfterValidator(postage_steps)] = Field(
        "0:1.49,50:4.99",
        description="What a parcel of a seller without `postage_steps` costs in a basket, by its value",
    )
    security_contact: Annotated[str | None, AfterValidator(_contact)] = Field(
        None,
        description="Who hears of a hole in this installation, an email address or https://…, for /.well-known/security.txt; absent: there is no such file",
    )
    set_up_token: str | None = Field(
        None,
        description="Opens /set-up while there is no seller; absent: one that follows from SECRET_KEY, in the link that `serve` prints",
    )
    outward_requests: bool = Field(
        True,
        description="Ask hosts of the internet: for pictures and catalogs, with webhooks, about assistants; off: nothing is asked, and no mail is sent",
    )
    public_demo: Annotated[str, AfterValidator(_demo)] = Field(
        "",
        description="Everybody may sign in as this member, written email:password, and change what `cardsync demo --public` undoes each night, nothing else; empty: this is no public demo",
    )
    development_pages: bool = Field(
        False, description="Serve /styleguide, the page of all components, for developers"
    )
    development_clients: bool = Field(
        False,
        description="Read the descriptions of assistants, fetch pictures and send webhooks at addresses of this machine, too, also by http; for developers",
    )
    allow_unknown_lines: bool = Field(
        False,
        description="An unknown product line label in an upload becomes a line of the account",
    )


class Notices(BaseModel):
    mail_url: Annotated[str | None, AfterValidator(_mail_server)] = Field(
        None,
        description="The mail server by which notices are sent: smtp://user:password@host:587 (with STARTTLS) or smtps://…; absent: no mail is sent",
    )
    mail_from: Annotated[str | None, AfterValidator(_mail_from)] = Field(
        None, description="The sender of mail, like `My Shop <notices@example.com>`"
    )
    notice_seconds: float = Field(
        60,
        gt=0,
        description="How often a worker looks in each shop for what mail and webhooks report",
    )
    mail_seconds: float = Field(
        30,
        gt=0,
        le=60,
        description="The mail server takes a mail within so long, or is left alone twice as long",
    )
    webhook_seconds: float = Field(
        15, gt=0, description="A webhook's receiver answers so soon, or is tried again later"
    )
    notice_retention_days: int = Field(
        90, ge=7, description="Notices, and what was sent of them, are kept so long"
    )

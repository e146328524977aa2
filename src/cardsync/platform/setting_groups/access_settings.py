"""The settings of time limits, secrets, sessions and rate limits."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from cardsync.platform.limits import read_limit

Network = IPv4Network | IPv6Network


def read_networks(text: str) -> tuple[Network, ...]:
    """Parse addresses and networks separated by commas. A ValueError names the invalid address or
    network.
    """
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def _networks(text: str) -> str:
    read_networks(text)
    return text


def _rate_limit(value: object) -> str:
    text = str(value)
    read_limit(text)
    return text


RateLimit = Annotated[str, BeforeValidator(_rate_limit)]


def _limit(what: str) -> str:
    return f"Rate limit of {what}: `<n>/min:<burst>`, `<n>/min` (burst a third of n) or `0` (none)"


class Waits(BaseModel):
    read_seconds: float = Field(
        5,
        gt=0,
        description="A statement that may be long (reads, searches, analyses) is ended after so long: 503 or, for a search, 422",
    )
    polled_seconds: float = Field(
        5,
        gt=0,
        description="What agents poll is answered so soon, or is 503",
    )
    request_seconds: float = Field(
        30,
        gt=0,
        description="Every other answer begins so soon after its request, or is 503",
    )
    body_slow_seconds: float = Field(
        30, gt=0, description="A body that comes slower than 1 kB/s for so long is ended with 400"
    )
    body_seconds: float = Field(
        600,
        gt=0,
        description="A request whose body is not whole after so long is ended with 400",
    )
    backtest_seconds: float = Field(
        120,
        gt=0,
        description="A backtest over more snapshots than it can price in so long is refused with 422",
    )


class Secrets(BaseModel):
    secret_key: str | None = Field(
        None,
        description="Signs upload URLs, and lets processes make members and keys; absent: made once and kept in DATA_DIR (set it where hosts are several)",
    )
    key_overlap_hours: int = Field(
        24,
        ge=0,
        description="An API key that is being replaced works so long, or until the new one is used",
    )
    former_secret_key: str | None = Field(
        None,
        description="The SECRET_KEY before the present one, until `cardsync admin rotate-secret` has sealed anew what it sealed",
    )


class Lifetimes(BaseModel):
    session_idle_seconds: int = Field(
        43_200,
        ge=1,
        description="A member's session ends after so long without a request",
    )
    session_seconds: int = Field(
        2_592_000,
        ge=1,
        description="A member's session ends so long after signing in",
    )
    plan_seconds: int = Field(
        86_400, ge=1, description="An assistant's plan waits so long for a member's click"
    )
    plan_retention_days: int = Field(
        90, ge=1, description="Plans that were decided are kept, and their keys remembered, so long"
    )
    authorization_code_seconds: int = Field(
        60, ge=1, le=600, description="An assistant fetches its access so soon after the consent"
    )
    access_token_seconds: int = Field(
        3600, ge=1, description="An assistant's access token is good for so long"
    )
    refresh_token_days: int = Field(
        30, ge=1, description="An assistant that is not used for so long is disconnected"
    )
    invitation_days: int = Field(
        7, ge=1, description="An invitation of a member is valid for so long"
    )


class RateLimits(BaseModel):
    rate_limit_general: RateLimit = Field(
        "300/min:100", description=_limit("every request of an API key")
    )
    rate_limit_uploads: RateLimit = Field("60/min:60", description=_limit("uploads of a key"))
    rate_limit_sync_request: RateLimit = Field(
        "20/min:20", description=_limit("sync/request and skip_wait of a key")
    )
    rate_limit_discovery: RateLimit = Field(
        "60/min:30", description=_limit("discovery by a caller")
    )
    rate_limit_writes: RateLimit = Field("60/min:30", description=_limit("writes of an assistant"))
    rate_limit_pictures: RateLimit = Field(
        "6000/min:2000", description=_limit("pictures of cards, which count in no other limit")
    )
    rate_limit_sign_in: RateLimit = Field(
        "5/min:5", description=_limit("sign-ins to an account from an address")
    )
    rate_limit_sign_in_account: RateLimit = Field(
        "10/min:20", description=_limit("sign-ins to an account, wherever they come from")
    )
    rate_limit_sign_in_address: RateLimit = Field(
        "30/min:30", description=_limit("sign-ins from an address, whatever the account")
    )
    rate_limit_anonymous: RateLimit = Field(
        "60/min:60",
        description=_limit("requests without a valid credential from an address (IPv6: a /64)"),
    )
    rate_limit_buylist: RateLimit = Field(
        "60/min:30", description=_limit("visits to public buylists from an address (IPv6: a /64)")
    )
    rate_limit_exchange_seconds: float = Field(
        1,
        gt=0,
        description="How often a web process exchanges what its limits have left with the others",
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        "",
        description="Addresses and networks, by commas, whose X-Forwarded-For is believed; empty: none",
    )

"""Defines every setting, with its default and one line of help. `docs/settings.md` is printed from
this table and compared by a test.

Sources, strongest first: arguments, environment `CARDSYNC_<NAME>`, a secret file named by
`CARDSYNC_<NAME>_FILE`, the TOML file named by `CARDSYNC_CONFIG`, the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from cardsync.platform.limits import PLANS, read_limit
from cardsync.platform.postage import postage_steps

PREFIX = "CARDSYNC_"


def default_data_dir() -> Path:
    """The user's data folder + `cardsync` (XDG on Linux, Application Support on macOS)."""
    home = Path.home()
    if (mac := home / "Library" / "Application Support").is_dir():
        return mac / "cardsync"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "cardsync"


def _rate_limit(value: object) -> str:
    text = str(value)
    read_limit(text)
    return text


def _networks(text: str) -> str:
    read_networks(text)
    return text


def _hosts(text: str) -> str:
    """A host of this machine has its port, too."""
    for part in text.split(","):
        if part.strip() and not re.fullmatch(r"[a-z0-9.-]+(:[0-9]{1,5})?", part.strip()):
            raise ValueError(f"{part.strip()} is no host in lower case")
    return text


def _limit(what: str) -> str:
    return f"Rate limit of {what}: `<n>/min:<burst>`, `<n>/min` (burst a third of n) or `0` (none)"


RateLimit = Annotated[str, BeforeValidator(_rate_limit)]


def _config_file() -> str | None:
    """Raises RuntimeError for one that is named and can't be read: its settings would silently
    not count.
    """
    path = os.environ.get(f"{PREFIX}CONFIG")
    if path:
        try:
            tomllib.loads(Path(path).expanduser().read_text())
        except OSError as e:
            raise RuntimeError(f"{PREFIX}CONFIG names {path}: {e.strerror}") from None
        except ValueError as e:
            raise RuntimeError(f"{PREFIX}CONFIG names {path}, which is no TOML: {e}") from None
    return path


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ValueError("it is like 127.0.0.1:8000")
    return text


def _address_or_none(text: str) -> str:
    return text and _address(text)


def _otlp(url: str | None) -> str | None:
    parts = urlsplit(url or "")
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        raise ValueError(
            "it must be like http://127.0.0.1:4318; a password belongs in OTEL_EXPORTER_OTLP_HEADERS"
        )
    return url or None


def _signals(text: str) -> str:
    if wrong := {one.strip() for one in text.split(",")} - {"traces", "metrics", "logs"}:
        raise ValueError(f"{min(wrong)!r} is none of traces, metrics, logs")
    return text


def _plan(text: str) -> str:
    if text not in PLANS:
        raise ValueError(f"it is one of {', '.join(PLANS)}")
    return text


def _database(url: str) -> str:
    """Say what is wrong without the URL, because the URL holds a password and libpq's message
    quotes parts of it.
    """
    # As SQLAlchemy's users write it.
    url = re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", url)
    if not url.startswith("postgresql://"):
        raise ValueError("it must begin with postgresql://")
    place = url.removeprefix("postgresql://").partition("?")[0]
    if place.count("@") > 1 or "@" in place.partition("/")[2]:
        raise ValueError("it has an @ too many; in a password it is written %40")
    try:
        given = conninfo_to_dict(url)
    except (ValueError, psycopg.Error):
        raise ValueError(
            "it cannot be read; in a password, what is no letter or digit is written like %40"
        ) from None
    if not all(port.isdigit() for port in str(given.get("port") or 5432).split(",")):
        raise ValueError(
            "its port is not a number; in a password, what is no letter or digit is written like %40"
        )
    return url


def _database_or_none(url: str | None) -> str | None:
    return url or None


def _pooler(url: str | None) -> str | None:
    """A pooler passes no settings on, so the role must be that of the one who signs in."""
    if not url:
        return None
    url = _database(url)
    if conninfo_to_dict(url).get("user") != "cardsync_app":
        raise ValueError("it must sign in as cardsync_app")
    return url


def _bucket(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in ("s3", "gs", "az") or not rest.partition("/")[0]:
        raise ValueError("it must be like s3://bucket/folder, gs://bucket or az://container")
    return url


def _mail_server(url: str | None) -> str | None:
    """Say what is wrong without the URL, because it holds a password."""
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


def _mirror(url: str | None) -> str | None:
    if url and not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?(/[\w.~-]+)*/?", url):
        raise ValueError("it must be like http://10.0.0.5:8080 or https://mirror.example/catalogs")
    return url or None


def _demo(text: str) -> str:
    email, _, password = text.partition(":")
    if text and not ("@" in email and password):
        raise ValueError("it must be like demo@example.com:password")
    return text


def _contact(text: str | None) -> str | None:
    """Read an email address as the URI that security.txt wants."""
    if not text:
        return None
    uri = text if re.match(r"https://|mailto:", text) else f"mailto:{text}"
    if not re.fullmatch(r"https://[^\s@/]+(/\S*)?|mailto:[^<>@\s]+@[^<>@\s]+", uri):
        raise ValueError("it must be like security@example.com or https://example.com/report")
    return uri


DatabaseUrl = Annotated[str, AfterValidator(_database)]


class SecretFiles(PydanticBaseSettingsSource):
    """`CARDSYNC_DATABASE_URL_FILE=/run/secrets/db` means the text of that file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        return (Path(path).read_text().strip() if path else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {
            name: self.get_field_value(info, name)[0]
            for name, info in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in found.items() if value is not None}


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    database_url: DatabaseUrl | None = Field(
        None, description="PostgreSQL to use; absent: an embedded server under DATA_DIR"
    )
    migration_database_url: Annotated[DatabaseUrl | None, BeforeValidator(_database_or_none)] = (
        Field(
            None,
            description="PostgreSQL as the role that owns the tables, for migrations; absent: DATABASE_URL",
        )
    )
    pooler_database_url: Annotated[str | None, AfterValidator(_pooler)] = Field(
        None,
        description="The same database behind a pooler in transaction mode (pgbouncer), signed in as cardsync_app, for requests and jobs; notices, waiting for jobs, dumps and migrations go to DATABASE_URL",
    )
    read_database_url: Annotated[DatabaseUrl | None, BeforeValidator(_database_or_none)] = Field(
        None,
        description="A streaming copy of the database (a standby), for heavy reads of large shops; they read the database where it lags or is away",
    )
    worker_alive_file: Path | None = Field(
        None,
        description="A file that a worker touches every SWEEP_SECONDS, for a probe that looks at its age; absent: none",
    )
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="Folder of the embedded database, objects and secrets",
    )
    object_store_url: Annotated[str, AfterValidator(_bucket)] | None = Field(
        None,
        description="s3://…, gs://…, az://… with credentials from the environment; absent: DATA_DIR/objects",
    )
    backup_dir: Path | None = Field(
        None, description="Folder of the backups; absent: DATA_DIR/backups"
    )
    backup_kind: Literal["dump", "base"] = Field(
        "dump",
        description="base: copy the embedded database's files once a week, and each day what changed; for one that is too large for a dump a day",
    )
    backup_url: Annotated[str, AfterValidator(_bucket)] | None = Field(
        None,
        description="s3://…, gs://…, az://…: a copy of each backup goes there, too, with credentials from the environment",
    )
    backup_database_url: Annotated[DatabaseUrl | None, BeforeValidator(_database_or_none)] = Field(
        None,
        description="PostgreSQL as a role that may act as cardsync_backup; absent: MIGRATION_DATABASE_URL",
    )
    daily_backups: bool | None = Field(
        None,
        description="Let `serve` make a backup each day and rehearse it; absent: with the embedded database alone",
    )
    public_url: str | None = Field(
        None,
        description="The origin agents reach, and members sign in at; absent: the address served. Beside it browsers are believed only"
        " under loopback names and the address served, so set a name of yours here",
    )
    bind: Annotated[str, AfterValidator(_address)] = Field(
        "127.0.0.1:8000", description="Address and port of the API"
    )
    metrics_bind: Annotated[str, AfterValidator(_address_or_none)] = Field(
        "127.0.0.1:9464", description="Address and port of /metrics; empty: none"
    )
    web_workers: int = Field(1, ge=1, description="Web processes of `serve`")
    job_workers: int = Field(1, ge=0, description="Worker processes of `serve`")
    heavy_processes: int = Field(
        3,
        ge=1,
        description="Processes of a host beside its web processes for heavy reads (previews, backtests, files); a web process has two at least, one seller two at a time, and what a write does is priced by one more",
    )
    heavy_memory_mb: int = Field(
        2048,
        ge=256,
        description="Most memory of such a process; a read that needs more is 503",
    )
    worker_memory_mb: int = Field(
        4096,
        ge=512,
        description="Most memory of a worker; a job that needs more ends it, and is given up after 20 attempts, a checked import after 100",
    )
    heavy_cards: int = Field(
        5_000,
        ge=0,
        description="A shop with no more cards is read by the web process itself",
    )
    database_pool: int = Field(
        8,
        ge=1,
        description="Database connections of a process for ordinary work; one seller's requests have a quarter of them at a time, and one more to price all cards",
    )
    database_hot_pool: int = Field(
        2,
        ge=1,
        description="Database connections of a web process for the polled reads: few, so that reads that arrive meanwhile are sent together",
    )
    database_read_pool: int = Field(
        3,
        ge=1,
        description="Database connections of a web process for reads that may be long; others wait for one",
    )
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
    sync_interval_minutes: int = Field(
        360,
        ge=30,
        description="Scheduled sync of sellers without an interval of their own",
    )
    sync_retry_seconds: int = Field(
        300,
        ge=1,
        description="First back-off after a failed scheduled cycle; doubles",
    )
    sync_cooldown_seconds: int = Field(
        3600,
        ge=0,
        description="Post-sync cooldown of manual requests",
    )
    stale_lock_seconds: int = Field(
        300, ge=1, description="A sync lock without refresh for so long is stale"
    )
    lease_seconds: float = Field(
        30,
        gt=0,
        le=240,
        description="Life of a price-mutation lease between renewals",
    )
    slab_rows: int = Field(
        20_000,
        ge=1,
        le=20_000,
        description="Rows of one transaction of an import",
    )
    rollback_seconds: int = Field(
        86_400,
        ge=1,
        description="A rollback expires this long after it was ready, unless it was applied",
    )
    claim_ttl_seconds: int = Field(600, ge=1, description="Life of a claimed agent task")
    feedback_wait_seconds: float = Field(
        20,
        gt=0,
        description="Feedback waits so long for earlier order uploads to be applied, then answers 503",
    )
    sweep_seconds: float = Field(
        5,
        gt=0,
        description="Accepted work older than this is nudged again",
    )
    last_seen_flush_seconds: float = Field(
        1,
        gt=0,
        description="How often a web process writes agents' last-seen times",
    )
    release_refresh_seconds: float = Field(
        60,
        gt=0,
        description="How often a web process reads the releases again, beside the notices of changes",
    )
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
    upload_retention_days: int = Field(30, ge=1, description="Raw uploads are kept so long")
    screenshot_retention_days: int = Field(
        14,
        ge=1,
        description="Debug screenshots of agents are kept so long",
    )
    unclaimed_retention_days: int = Field(
        1,
        ge=1,
        description="Uploaded objects that no sync named are kept so long",
    )
    receipt_retention_days: int = Field(
        730,
        ge=1,
        description="Receipts of pricing runs are kept so long; without them a price is explained by today's rules alone",
    )
    activity_retention_days: int = Field(
        730,
        ge=1,
        description="Entries of the activity feed stay in the database, and can be undone, so long; then they are in the object store",
    )
    history_retention_days: int = Field(
        730,
        ge=31,
        description="Price history stays in the database so long; then it is in the object store",
    )
    cycle_retention_days: int = Field(
        730,
        ge=31,
        description="Agents' logs of their cycles stay in the database so long; then they are in the object store",
    )
    old_data_retention_days: int = Field(
        3650, ge=31, description="Old rows are kept in the object store so long, by whole months"
    )
    market_retention_days: int = Field(
        180, ge=61, description="Observed sales, listings and market prices are kept so long"
    )
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
    picture_hosts: Annotated[str, AfterValidator(_hosts)] = Field(
        "tcgplayer-cdn.tcgplayer.com,cards.scryfall.io,images.pokemontcg.io,assets.tcgdex.net",
        description="Hosts, by commas, from which workers fetch pictures of cards, each once for all sellers; empty: pictures are off, and pages draw a stand-in",
    )
    picture_pause_seconds: float = Field(
        0.5,
        ge=0,
        description="All workers together ask a host for a picture no sooner than so long after the last one",
    )
    catalog_renewal_days: int = Field(
        7,
        ge=0,
        description="Workers download an installed catalog again after so long, if its source has something new; 0: never",
    )
    catalog_dir: Path | None = Field(
        None,
        description="Folder in which workers keep what they downloaded of catalogs, hundreds of megabytes; absent: DATA_DIR/catalogs",
    )
    catalog_mirror: Annotated[str | None, AfterValidator(_mirror)] = Field(
        None,
        description="A server of yours that stands for all sources of catalogs, like http://10.0.0.5:8080: https://api.scryfall.com/bulk-data is asked as http://10.0.0.5:8080/api.scryfall.com/bulk-data; absent: the sources themselves, in the public internet alone",
    )
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
    log_level: str = Field("info", description="debug, info, warning or error")
    log_format: str = Field("auto", description="json, text, or auto: text on a terminal")
    slow_statement_ms: int = Field(
        1000,
        ge=0,
        description="A database statement that takes longer is logged once, without its values; 0: none",
    )
    otlp_url: Annotated[str | None, AfterValidator(_otlp)] = Field(
        None,
        description="Receiver of traces, logs and metrics by OTLP over HTTP, like http://127.0.0.1:4318; headers for it: OTEL_EXPORTER_OTLP_HEADERS; absent: none are sent",
    )
    otlp_signals: Annotated[str, AfterValidator(_signals)] = Field(
        "traces,metrics,logs",
        description="What is sent there: traces, metrics, logs, by commas; logs cost most, and are on stderr all the same",
    )
    trace_ratio: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of requests and jobs that are traced; those of a sync by the agent, and what they start, always are; polls never",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, _config_file())
        return init_settings, env_settings, SecretFiles(settings_cls), toml

    @property
    def host(self) -> str:
        return self.bind.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.bind.rpartition(":")[2])

    @property
    def exports(self) -> frozenset[str]:
        """The signals that are sent by OTLP."""
        return (
            frozenset(map(str.strip, self.otlp_signals.split(",")))
            if self.otlp_url
            else frozenset()
        )

    @property
    def slow_seconds(self) -> float:
        return self.slow_statement_ms / 1000 or inf

    @property
    def sends_mail(self) -> bool:
        return None not in (self.mail_url, self.mail_from) and self.outward_requests

    @property
    def backups_folder(self) -> Path:
        return self.backup_dir or self.data_dir / "backups"

    @property
    def catalogs_folder(self) -> Path:
        return self.catalog_dir or self.data_dir / "catalogs"

    @property
    def origin(self) -> str:
        """PUBLIC_URL without a trailing slash, else the address served."""
        return (self.public_url or f"http://{self.bind}").rstrip("/")

    def origin_for(self, host: str | None) -> str:
        """The same for a caller who reached us as `host`: an address of all interfaces is none
        that a caller could use.
        """
        return (
            f"http://{host}"
            if self.public_url is None and self.is_everywhere and host
            else self.origin
        )

    @property
    def is_everywhere(self) -> bool:
        """Whether the address served is that of all interfaces."""
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104

    def is_own_name(self, host: str) -> bool:
        """Whether a Host header names us, also without PUBLIC_URL: loopback names and the address
        served do.

        Any other name may be pointed at our address by who owns it, whose page would then pass
        for ours. An address in numbers may not: where all interfaces are served, it is one of
        them.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in ("localhost", self.host.lower()):
                return True
            address = ip_address(name)
        except ValueError:
            # A caller writes into this header what it likes, brackets that are never closed too.
            return False
        return address.is_loopback or (self.is_everywhere and self.public_url is None)


def described_settings() -> list[dict[str, str | None]]:
    """Return each setting with its default, as written, and its line of help."""
    return [
        {
            "name": name,
            "default": "the user's data folder + `cardsync`"
            if name == "data_dir"
            else None
            if info.default is None
            else f"`{info.default}`",
            "help": info.description,
        }
        for name, info in Settings.model_fields.items()
    ]


def settings_page() -> str:
    """docs/settings.md, printed from the fields."""
    lines = [
        "# Settings",
        "",
        f"Environment `{PREFIX}<NAME>`; a secret may be in a file named by `{PREFIX}<NAME>_FILE`;",
        "",
    ]
    lines[-2] += (
        f" `{PREFIX}CONFIG` names a TOML file. This page is printed by `cardsync settings`."
    )
    for one in described_settings():
        lines += [
            f"### `{one['name']}`",
            f"{one['help']}. Default: {one['default'] or 'none'}.",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


Network = IPv4Network | IPv6Network


def read_networks(text: str) -> tuple[Network, ...]:
    """Addresses and networks separated by commas; ValueError names the one that is none."""
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())

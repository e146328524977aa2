"""The settings of databases, files, processes, old data, logs and telemetry."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field


def default_data_dir() -> Path:
    """Return the user's data folder + `cardsync` (XDG on Linux, Application Support on macOS)."""
    home = Path.home()
    if (mac := home / "Library" / "Application Support").is_dir():
        return mac / "cardsync"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "cardsync"


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ValueError("it is like 127.0.0.1:8000")
    return text


def _address_or_none(text: str) -> str:
    return text and _address(text)


def _database(url: str) -> str:
    """Check the URL. The error does not quote the URL, because the URL contains a password and
    libpq's message quotes parts of it.
    """
    # Accept the forms that users of SQLAlchemy write.
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


DatabaseUrl = Annotated[str, AfterValidator(_database)]


def _pooler(url: str | None) -> str | None:
    """Check a pooler's URL; a pooler passes no settings on, so it must sign in as the application's
    role.
    """
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


class Places(BaseModel):
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

    @property
    def backups_folder(self) -> Path:
        return self.backup_dir or self.data_dir / "backups"


class Processes(BaseModel):
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

    @property
    def host(self) -> str:
        return self.bind.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.bind.rpartition(":")[2])

    @property
    def origin(self) -> str:
        """PUBLIC_URL without a trailing slash, or else the address on which the service listens."""
        return (self.public_url or f"http://{self.bind}").rstrip("/")

    def origin_for(self, host: str | None) -> str:
        """Return the origin for a caller who reached the service as `host`. The origin has `host`
        if the service listens on all interfaces without PUBLIC_URL, because a caller cannot use the
        address of all interfaces.
        """
        return (
            f"http://{host}"
            if self.public_url is None and self.is_everywhere and host
            else self.origin
        )

    @property
    def is_everywhere(self) -> bool:
        """Whether the service listens on all interfaces."""
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104

    def is_own_name(self, host: str) -> bool:
        """Return whether a Host header names this service, also without PUBLIC_URL: loopback names
        and the address on which the service listens do.

        Any other name may belong to a person who points it at our address, and whose page would
        then pass for ours. A numeric address cannot be pointed elsewhere: if the service listens on
        all interfaces, all numeric addresses name the service.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in ("localhost", self.host.lower()):
                return True
            address = ip_address(name)
        except ValueError:
            # A caller may write anything into this header, even brackets that are never closed.
            return False
        return address.is_loopback or (self.is_everywhere and self.public_url is None)


class OldData(BaseModel):
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


class Logs(BaseModel):
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

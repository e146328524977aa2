"""Checks an installation, one line per part: the database and its roles, the clock, the object
store, the disk, backups, catalogs, mail, the receiver of telemetry, the address that browsers use,
and versions. A line that is not ok includes the remedy.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from cardsync import __version__
from cardsync.catalog import catalog_age
from cardsync.operations.backup_bucket import Bucket
from cardsync.operations.cluster_checks import BACK_UP_NODES, is_spread
from cardsync.platform import clock
from cardsync.platform.backups import backup_folder, backup_reports, backup_schedule
from cardsync.platform.database.migrate import head_revision
from cardsync.platform.database.urls import APP_ROLE, BACKUP_ROLE, connect
from cardsync.platform.secret import former_secrets, key_file
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store

MOST_SKEW: Final = timedelta(seconds=2)
# With less free space than the first figure the line is bad, because the disk will soon refuse
# uploads; with less than the second it is a note.
_BAD_ROOM, _LITTLE_ROOM = 500_000_000, 5_000_000_000
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_HELD_GAMES: Final = (
    "SELECT game FROM catalog_name GROUP BY game HAVING sum(printings) > 0 ORDER BY game"
)
State = Literal["ok", "note", "bad"]
CheckMail = Callable[[str], Coroutine[None, None, None]]


class Line(NamedTuple):
    """The state of one part, and a sentence about it."""

    state: State
    part: str
    sentence: str


def examine(settings: Settings, check_mail: CheckMail) -> Iterator[Line]:
    """Yield a line for each part of an installation whose database runs. A check that raises
    becomes a line, too. `check_mail` signs in at the mail server of an address, and raises if it
    cannot.
    """
    checks: tuple[tuple[str, Callable[[Settings], Iterator[Line]]], ...] = (
        ("database", _database),
        ("object store", _store),
        ("disk", _disk),
        ("secret", _secret),
        ("backups", _backups),
        ("databases", _kept_databases),
        ("catalogs", _catalogs),
        ("mail", lambda settings: _mail(settings, check_mail)),
        ("telemetry", _telemetry),
        ("address", _address),
        ("versions", _versions),
    )
    for part, check in checks:
        try:
            yield from check(settings)
        except Exception as e:
            yield Line("bad", part, f"it cannot be checked: {' '.join(str(e).split())[:300]}")


def _database(settings: Settings) -> Iterator[Line]:
    assert settings.database_url is not None
    with connect(settings.database_url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
        named = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
        revision = (
            connection.execute("SELECT version_num FROM alembic_version").fetchone()
            if named != (None,)
            else None
        )
        now = connection.execute("SELECT clock_timestamp()").fetchone()
        role = connection.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        backup_role = connection.execute(
            "SELECT rolbypassrls AND NOT rolsuper FROM pg_roles WHERE rolname = %s", [BACKUP_ROLE]
        ).fetchone()
    assert version is not None
    assert now is not None
    at = revision[0] if revision else "none yet"
    if at == head_revision():
        yield Line("ok", "database", f"PostgreSQL {version[0]}, schema {at}")
    else:
        told = f"schema {at}, this program needs {head_revision()}: run `cardsync migrate`"
        yield Line("bad", "database", told)
    if role == (False,):
        yield Line("ok", "database role", f"{APP_ROLE} is bound by row-level security")
    else:
        yield Line("bad", "database role", f"it passes row-level security: sign in as {APP_ROLE}")
    if backup_role == (True,):
        yield Line("ok", "backup role", f"{BACKUP_ROLE} reads all shops and writes nothing")
    else:
        told = f"as a superuser, run: CREATE ROLE {BACKUP_ROLE} BYPASSRLS; then `cardsync migrate`"
        yield Line("bad", "backup role", told)
    skew = abs(clock.now() - now[0])
    if skew > MOST_SKEW:
        told = f"{skew.total_seconds():.0f} s apart from the database's: let both use time servers"
        yield Line("bad", "clock", told)
    else:
        yield Line("ok", "clock", "this computer and the database agree")


def _store(settings: Settings) -> Iterator[Line]:
    place = settings.object_store_url or str(settings.data_dir / "objects")
    try:
        asyncio.run(open_store(settings).check())
    except Exception as e:
        words = " ".join(str(e).split())[:200]
        told = f"{place} cannot be written ({words}): look at OBJECT_STORE_URL and its credentials"
        yield Line("bad", "object store", told)
    else:
        yield Line("ok", "object store", f"{place} can be written")


def _disk(settings: Settings) -> Iterator[Line]:
    free = shutil.disk_usage(_existing(settings.data_dir)).free
    said = f"{free / 1e9:,.1f} GB are free for {settings.data_dir}"
    if free < _BAD_ROOM:
        yield Line("bad", "disk", f"{said}: make room, or uploads are refused")
    elif free < _LITTLE_ROOM:
        yield Line("note", "disk", f"{said}: make room soon")
    else:
        yield Line("ok", "disk", said)


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _secret(settings: Settings) -> Iterator[Line]:
    path = key_file(settings)
    if former_secrets(settings):
        told = "the one before is still accepted: run `cardsync admin rotate-secret`"
        yield Line("note", "secret", told)
    elif settings.secret_key:
        yield Line("ok", "secret", "SECRET_KEY is set")
    elif not path.exists():
        yield Line("note", "secret", "it is made with the first start of `cardsync serve`")
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Line("bad", "secret", f"others can read {path}: run chmod 600 {path}")
    else:
        yield Line("ok", "secret", f"{path} is readable by its owner alone")


def _backups(settings: Settings) -> Iterator[Line]:
    assert settings.database_url is not None
    with connect(settings.database_url) as connection:
        if is_spread(connection):
            yield Line("note", "backups", BACK_UP_NODES)
            return
        made_at = _newest_backup(settings)
        is_here = made_at is not None
        if not is_here and not settings.daily_backups:
            # Another host or a separate container makes the backups and reports them.
            rows = connection.execute(backup_reports.NEWEST)
            made_at = backup_reports.state_of(rows, clock.now()).backup.last_good
    folder = settings.backups_folder
    if made_at is None:
        yield Line("bad", "backups", f"there is none in {folder}: run `cardsync backup now`")
    elif backup_schedule.is_too_old(clock.now(), made_at):
        told = f"the newest is of {made_at:%Y-%m-%d %H:%M} UTC: run `cardsync backup now`"
        yield Line("bad", "backups", told)
    else:
        yield Line("ok", "backups", f"the newest is of {made_at:%Y-%m-%d %H:%M} UTC")
    disks = {_existing(place).stat().st_dev for place in (folder, settings.data_dir)}
    if is_here and settings.backup_url is None and len(disks) == 1:
        told = "they are on the disk of the data: set BACKUP_URL or BACKUP_DIR to another place"
        yield Line("note", "backups", told)


def _newest_backup(settings: Settings) -> datetime | None:
    here = backup_folder.newest(settings.backups_folder)
    away = Bucket(settings.backup_url).names() if settings.backup_url else []
    times = [here, *map(backup_folder.moment_of, away)]
    return max((one for one in times if one is not None), default=None)


def _kept_databases(settings: Settings) -> Iterator[Line]:
    """List the databases and folders that restores and upgrades left: these use space until a
    person drops them.
    """
    assert settings.database_url is not None
    with connect(settings.database_url) as connection:
        kept = connection.execute(
            "SELECT datname FROM pg_database"
            " WHERE starts_with(datname, current_database() || '_before_') ORDER BY 1"
        ).fetchall()
    for (name,) in kept:
        told = f"{name} was replaced by a restore: `cardsync restore --drop-old` drops it"
        yield Line("note", "databases", told)
    for path in sorted((settings.data_dir / "postgres").glob("before-*")):
        yield Line("note", "databases", f"{path} is from before an upgrade: delete it some day")


def _catalogs(settings: Settings) -> Iterator[Line]:
    """Describe which games have a catalog, how old each catalog is, and the error of the newest
    try.
    """
    assert settings.database_url is not None
    with connect(settings.database_url) as connection:
        named = connection.execute("SELECT to_regclass('catalog_updates')").fetchone()
        if named == (None,):
            return
        held = connection.execute(_HELD_GAMES).fetchall()
        rows = connection.execute(f"{catalog_age.INSTALLED} ORDER BY game, source").fetchall()
    if not held:
        told = "none is installed: run `cardsync catalog install magic` (docs/catalogs.md)"
        yield Line("note", "catalogs", told)
    fine = []
    found = [catalog_age.Dated(*row) for row in rows]
    for one in found:
        game, checked_at, now = one.game, one.checked_at, clock.now()
        is_late = catalog_age.is_late(one, now, settings.catalog_renewal_days)
        if one.failure is not None:
            kept = f"; the one of {checked_at:%Y-%m-%d} stays" if checked_at else ""
            told = (
                f"{game} failed at {one.failed_at:%Y-%m-%d %H:%M} UTC: {one.failure}{kept};"
                f" `cardsync catalog install {game}` tries again"
            )
            yield Line("bad" if is_late or not checked_at else "note", "catalogs", told)
        elif checked_at and is_late:
            told = (
                f"{game} ({one.source}) is {(now - checked_at).days} days old: is a worker running?"
            )
            yield Line("bad", "catalogs", told)
        elif one.left_at:
            told = (
                f"{game} went back to its last version on {one.left_at:%Y-%m-%d}:"
                f" `cardsync catalog install {game}` takes what {one.source} has now"
            )
            yield Line("note", "catalogs", told)
        elif checked_at:
            fine.append(f"{game} of {checked_at:%Y-%m-%d}")
    installed = {one.game for one in found}
    fine += [f"{game} from a file" for (game,) in held if game not in installed]
    if fine:
        yield Line("ok", "catalogs", ", ".join(fine))


def _mail(settings: Settings, check: CheckMail) -> Iterator[Line]:
    if settings.mail_url is None or settings.mail_from is None:
        yield Line("note", "mail", "none is sent: set MAIL_URL and MAIL_FROM")
        return
    try:
        asyncio.run(check(settings.mail_url))
    except Exception as e:
        yield Line("bad", "mail", f"{e}: look at MAIL_URL")
    else:
        yield Line("ok", "mail", f"the mail server takes mail of {settings.mail_from}")


def _telemetry(settings: Settings) -> Iterator[Line]:
    if settings.otlp_url is None:
        return
    split = urlsplit(settings.otlp_url)
    port = split.port or (443 if split.scheme == "https" else 80)
    try:
        with socket.create_connection((split.hostname or "", port), timeout=5):
            yield Line("ok", "telemetry", f"{split.hostname}:{port} answers")
    except OSError as e:
        told = f"{split.hostname}:{port} does not answer ({e}): look at OTLP_URL"
        yield Line("bad", "telemetry", told)


def _address(settings: Settings) -> Iterator[Line]:
    split = urlsplit(settings.origin)
    if split.scheme != "https" and split.hostname not in _LOOPBACK:
        told = f"{settings.origin} is not encrypted: put a proxy with a certificate before it"
        yield Line("bad", "address", told)
    elif settings.public_url and not settings.trusted_proxies:
        told = (
            f"{settings.origin}; behind a proxy set TRUSTED_PROXIES, or all visitors share one"
            " rate limit"
        )
        yield Line("note", "address", told)
    else:
        yield Line("ok", "address", settings.origin)


def _versions(settings: Settings) -> Iterator[Line]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Line("ok", "versions", f"cardsync {__version__}, Python {python}")

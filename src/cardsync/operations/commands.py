"""The commands `cardsync backup …`, `cardsync restore`, `cardsync db …` and `cardsync admin
rotate-secret`: each calls one operation and prints its result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cardsync.operations.processes.command_line import Result, prints, say, settings_with
from cardsync.platform import clock
from cardsync.platform.errors import CommandError
from cardsync.platform.limits import SHARDS
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from cardsync.operations.installation_backups import InstallationBackups
    from cardsync.platform.backups.backup_folder import Backup

DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Folder of the embedded database and objects.",
)


@contextmanager
def _backups(data_dir: Path | None) -> Iterator[InstallationBackups]:
    from cardsync.operations.installation_backups import InstallationBackups
    from cardsync.operations.processes.copied_cluster import running_copy
    from cardsync.operations.processes.embedded_host import bundled
    from cardsync.operations.processes.supervisor import database

    with database(settings_with(data_dir=data_dir), say) as ready:
        run_copy = partial(running_copy, ready.data_dir / "copied-database", say=say)
        yield InstallationBackups(ready, bundled().values(), _replayed, run_copy, say)


@click.group()
def backup() -> None:
    """Make, list, check and rehearse backups of the database and its objects."""


@backup.command("now")
@prints
@DATA_DIR
def backup_now(data_dir: Path | None) -> Result:
    """Make a backup in DATA_DIR/backups and, where BACKUP_URL is set, a copy in that bucket. The
    service may run meanwhile.

    Example: cardsync backup now
    """
    with _backups(data_dir) as backups:
        made = backups.take()
    return Result(_line(made), [f"{made.path}: {_sentence(made)}"])


@backup.command("list")
@prints
@DATA_DIR
def backup_list(data_dir: Path | None) -> Result:
    """List the backups, the newest first.

    Example: cardsync backup list
    """
    from cardsync.operations.backup_bucket import Bucket
    from cardsync.platform.backups import backup_folder

    settings = settings_with(data_dir=data_dir)
    found = backup_folder.listed(settings.backups_folder)
    away = Bucket(settings.backup_url).names() if settings.backup_url else []
    backups = [_line(one) | {"in_bucket": one.name in away} for one in found]
    here = {one.name for one in found}
    elsewhere = [name for name in away if name not in here]
    backups += [{"name": name, "in_bucket": True} for name in elsewhere]
    lines = [
        f"{one.name}  {_sentence(one)}{'; also in the bucket' if one.name in away else ''}"
        for one in found
    ]
    lines += [f"{name}  in the bucket" for name in elsewhere]
    if not backups:
        lines = ["there is no backup yet: `cardsync backup now` makes one"]
    damaged = [*backup_folder.unreadable(settings.backups_folder)]
    return Result({"backups": backups, "unreadable": damaged}, [*lines, *damaged])


@backup.command("verify")
@prints
@click.argument("name", required=False)
@DATA_DIR
def backup_verify(name: str | None, data_dir: Path | None) -> Result:
    """Read a backup, the newest without a NAME, and check each file against its manifest.

    Example: cardsync backup verify
    """
    from cardsync.operations import base_backup
    from cardsync.platform.backups import backup_folder

    found = backup_folder.find(settings_with(data_dir=data_dir).backups_folder, name)
    base_backup.check(found)
    return Result(_line(found), [f"{found.name} is as it was written: {_sentence(found)}"])


@backup.command("rehearse")
@prints
@click.argument("name", required=False)
@DATA_DIR
def backup_rehearse(name: str | None, data_dir: Path | None) -> Result:
    """Restore a backup (the newest if no NAME is given) into a database of its own, check it, and
    drop it.

    Example: cardsync backup rehearse
    """
    with _backups(data_dir) as backups:
        done = backups.rehearse(name)
    return Result(_line(done), [f"{done.name} can be restored: {_sentence(done)}"])


@backup.command("daily", hidden=True)
@DATA_DIR
def backup_daily(data_dir: Path | None) -> None:
    """Make the day's backup if it is due, delete old backups, and rehearse; `serve` calls this
    command.
    """
    with _backups(data_dir) as backups:
        made = backups.daily()
    if made is not None:
        click.echo(f"{made.name}: {_sentence(made)}")


@click.command()
@prints
@click.argument("name", required=False)
@DATA_DIR
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option(
    "--from-another-installation",
    "foreign",
    is_flag=True,
    help="Take a backup of another installation in place of the shop here.",
)
@click.option(
    "--without-damaged-objects",
    "damaged",
    is_flag=True,
    help="Go on although files of uploads, receipts or pictures are lost.",
)
@click.option("--drop-old", is_flag=True, help="Drop what earlier restores replaced, and end.")
def restore(
    name: str | None,
    data_dir: Path | None,
    yes: bool,
    foreign: bool,
    damaged: bool,
    drop_old: bool,
) -> Result:
    """Restore a backup (the newest if no NAME is given) into a database beside the present one,
    check it, and switch to it. Stop the service first. A restore that fails changes nothing.

    Example: cardsync restore
    """
    from cardsync.operations import restore_backup

    with _backups(data_dir) as backups:
        if drop_old:
            dropped = restore_backup.drop_old(backups.target)
            lines = [f"{one} is dropped" for one in dropped] or ["nothing was replaced"]
            return Result({"dropped": dropped}, lines)
        found = backups.find(name)
        restore_backup.must_rest(backups.target)
        restore_backup.must_fit(backups.target, found, foreign=foreign)
        undone = restore_backup.undone_by(backups.target, found)
        if undone is not None:
            say(undone.sentence())
            if not yes:
                click.confirm("Restore it?", abort=True, err=True)
        old = backups.restore(found, fresh=undone is None, damaged=damaged)
    line = (
        f"{found.name} is restored: {_sentence(found)}. What was there before is kept as the"
        f" database {old}; `cardsync restore --drop-old` drops it"
    )
    return Result(_line(found) | {"kept_as": old}, [line])


@backup.command("restore-asked", hidden=True)
@DATA_DIR
def restore_asked(data_dir: Path | None) -> None:
    """Restore the backup that a person requested on the set-up page. `serve` calls this command,
    and closes its standard input after the web and worker processes have ended.
    """
    from cardsync.operations import requested_restore

    settings = settings_with(data_dir=data_dir)
    with _backups(data_dir) as backups:
        requested_restore.carry_out(settings.data_dir, backups, sys.stdin.read)


@click.command()
@prints
@DATA_DIR
def doctor(data_dir: Path | None) -> Result:
    """Check the installation, with a line for each part; exit status 1 if a part is bad.

    Example: cardsync doctor
    """
    from cardsync.operations.doctor import examine
    from cardsync.operations.processes.supervisor import database
    from cardsync.shop.notices import mail_server

    settings = settings_with(data_dir=data_dir)
    with database(settings, say, migrated=False) as ready:
        found = list(examine(ready, mail_server.check))
    lines = (f"{line.state:<4}  {line.part:<13}  {line.sentence}" for line in found)
    is_bad = any(line.state == "bad" for line in found)
    return Result({"lines": [line._asdict() for line in found]}, lines, is_bad)


def _replayed(url: str, objects: Path) -> str | None:
    # Polars takes long to import, and only this function needs it.
    from cardsync.prices.receipts.replayed_receipts import fault

    return fault(url, objects)


def _sentence(one: Backup) -> str:
    rows = one.manifest.tables
    return (
        f"{rows.get('seller', 0):,} shops, {rows.get('card', 0):,} cards,"
        f" {rows.get('orders', 0):,} orders, {one.manifest.object_count:,} objects,"
        f" {one.bytes / 1e6:,.1f} MB{_built_on(one)}"
    )


def _built_on(one: Backup) -> str:
    return f", built on {one.manifest.parent}" if one.manifest.parent else ""


def _line(one: Backup) -> JsonObject:
    manifest = one.manifest
    return {
        "name": one.name,
        "path": str(one.path),
        "made_at": clock.rfc3339(manifest.made_at),
        "bytes": one.bytes,
        "objects": manifest.object_count,
        "revision": manifest.revision,
        "program": manifest.program,
        "rows": sum(manifest.tables.values()),
    }


@click.group()
def db() -> None:
    """Spread the database over several machines."""


@db.command("distribute")
@prints
@click.option("--dry-run", is_flag=True, help="Print what is to be done, and do nothing.")
@click.option(
    "--shards",
    type=click.IntRange(1, 1024),
    default=SHARDS,
    show_default=True,
    help="Parts that sellers are divided into, when the first table is spread.",
)
def db_distribute(dry_run: bool, shards: int) -> Result:
    """Spread the tables of sellers over the nodes of a Citus cluster. Stop the service first. Run
    the command again after a kill, or after an update with new tables: it does what is missing.

    Example: cardsync db distribute --dry-run
    """
    from cardsync.operations.distribute import Places, distribute
    from cardsync.tables import spread_tables, tables_everywhere

    settings = settings_with()
    url = settings.migration_database_url or settings.database_url
    if url is None:
        raise CommandError("the embedded database is one machine: set CARDSYNC_DATABASE_URL")
    spread = [table.name for table in spread_tables()]
    places = Places(spread, [table.name for table in tables_everywhere()])
    steps = distribute(url, places, shards, say, dry_run=dry_run)
    data = {
        "dry_run": dry_run,
        "steps": [{"says": step.says, "statements": [*step.statements]} for step in steps],
    }
    if not dry_run:
        return Result(data, ["the database is spread by seller"])
    lines = [
        line
        for step in steps
        for line in (f"-- {step.says}", *(f"{one};" for one in step.statements))
    ]
    return Result(data, [*lines, f"-- {len(steps)} steps"])


@click.command("rotate-secret")
@prints
def rotate_secret() -> Result:
    """Replace the installation's secret, whether the service runs or not. Data that was sealed with
    the old secret is sealed again; links in mails that were sent before stop working.

    Example: cardsync admin rotate-secret
    """
    from cardsync.operations.processes.supervisor import database
    from cardsync.operations.rotate_secret import rotate, seal_anew

    with database(settings_with(), say) as ready:
        done = rotate(ready, seal_anew)
    lines = [
        f"{done.secrets} secrets of webhooks are sealed with the present secret",
        "the secret before it opens nothing any more",
    ]
    if done.lost:
        say(
            f"Error: {done.lost} secrets of webhooks were sealed with a secret that is not known"
            " here: their owners create new ones"
        )
    return Result({"resealed": done.secrets, "lost": done.lost}, lines, done.lost > 0)

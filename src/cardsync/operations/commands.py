"""The commands `cardsync backup …`, `cardsync restore`, `cardsync db …` and `cardsync admin
rotate-secret`: each calls one operation and prints its result.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from cardsync import clock
from cardsync.errors import CommandError
from cardsync.notices import mail_server
from cardsync.notices.seal_anew import seal_anew
from cardsync.operations import asked_restore, backup_folder, base_backup, restore_backup
from cardsync.operations.backup_bucket import Bucket
from cardsync.operations.backup_folder import Backup
from cardsync.operations.distribute import SHARDS, Places, distribute
from cardsync.operations.installation_backups import InstallationBackups
from cardsync.operations.rotate_secret import rotate
from cardsync.processes.command_line import say, settings_with
from cardsync.processes.copied_cluster import running_copy
from cardsync.processes.embedded_host import bundled
from cardsync.processes.supervisor import database

DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Folder of the embedded database and objects.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@contextmanager
def _backups(data_dir: Path | None) -> Iterator[InstallationBackups]:
    with database(settings_with(data_dir=data_dir), say) as ready:
        run_copy = partial(running_copy, ready.data_dir / "copied-database", say=say)
        yield InstallationBackups(ready, bundled().values(), _replayed, run_copy, say)


@click.group()
def backup() -> None:
    """Make, list, check and rehearse backups of the database and its objects."""


@backup.command("now")
@DATA_DIR
@JSON
def backup_now(data_dir: Path | None, as_json: bool) -> None:
    """Make a backup in DATA_DIR/backups and, where BACKUP_URL is set, a copy in that bucket. The
    service may run meanwhile.
    """
    with _backups(data_dir) as backups:
        made = backups.take()
    if as_json:
        click.echo(json.dumps(_line(made)))
    else:
        click.echo(f"{made.path}: {_sentence(made)}")


@backup.command("list")
@DATA_DIR
@JSON
def backup_list(data_dir: Path | None, as_json: bool) -> None:
    """List the backups, the newest first."""
    settings = settings_with(data_dir=data_dir)
    found = backup_folder.listed(settings.backups_folder)
    away = Bucket(settings.backup_url).names() if settings.backup_url else []
    lines = [_line(one) | {"in_bucket": one.name in away} for one in found]
    here = {one.name for one in found}
    lines += [{"name": name, "in_bucket": True} for name in away if name not in here]
    if as_json:
        click.echo(json.dumps({"backups": lines}))
        return
    if not lines:
        click.echo("there is no backup yet: `cardsync backup now` makes one")
    for one in found:
        click.echo(
            f"{one.name}  {_sentence(one)}{'; also in the bucket' if one.name in away else ''}"
        )
    for name in (name for name in away if name not in here):
        click.echo(f"{name}  in the bucket")
    for why in backup_folder.unreadable(settings.backups_folder):
        click.echo(why)


@backup.command("verify")
@click.argument("name", required=False)
@DATA_DIR
def backup_verify(name: str | None, data_dir: Path | None) -> None:
    """Read a backup, the newest without a NAME, and check each file against its manifest."""
    found = backup_folder.find(settings_with(data_dir=data_dir).backups_folder, name)
    base_backup.check(found)
    click.echo(f"{found.name} is as it was written: {_sentence(found)}")


@backup.command("rehearse")
@click.argument("name", required=False)
@DATA_DIR
def backup_rehearse(name: str | None, data_dir: Path | None) -> None:
    """Restore a backup, the newest without a NAME, into a database of its own, check it, and drop
    it.
    """
    with _backups(data_dir) as backups:
        done = backups.rehearse(name)
    click.echo(f"{done.name} can be restored: {_sentence(done)}")


@backup.command("daily", hidden=True)
@DATA_DIR
def backup_daily(data_dir: Path | None) -> None:
    """Make the day's backup if it is due, delete what is no longer kept, and rehearse; `serve`
    calls it.
    """
    with _backups(data_dir) as backups:
        made = backups.daily()
    if made is not None:
        click.echo(f"{made.name}: {_sentence(made)}")


@click.command()
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
) -> None:
    """Restore a backup, the newest without a NAME: into a database beside the present one, checked,
    and then switched. Stop the service first. A restore that fails changes nothing.
    """
    with _backups(data_dir) as backups:
        if drop_old:
            dropped = restore_backup.drop_old(backups.target)
            click.echo("\n".join(f"{one} is dropped" for one in dropped) or "nothing was replaced")
            return
        found = backups.find(name)
        restore_backup.must_rest(backups.target)
        restore_backup.must_fit(backups.target, found, foreign=foreign)
        undone = restore_backup.undone_by(backups.target, found)
        if undone is not None:
            say(undone.sentence())
            if not yes:
                click.confirm("Restore it?", abort=True, err=True)
        old = backups.restore(found, fresh=undone is None, damaged=damaged)
    click.echo(
        f"{found.name} is restored: {_sentence(found)}. What was there before is kept as the"
        f" database {old}; `cardsync restore --drop-old` drops it"
    )


@backup.command("restore-asked", hidden=True)
@DATA_DIR
def restore_asked(data_dir: Path | None) -> None:
    """Restore the backup that the set-up page asked for; `serve` calls it, and ends its input once
    web and worker processes have ended.
    """
    settings = settings_with(data_dir=data_dir)
    with _backups(data_dir) as backups:
        asked_restore.carry_out(settings.data_dir, backups, sys.stdin.read)


@click.command()
@DATA_DIR
@JSON
def doctor(data_dir: Path | None, as_json: bool) -> None:
    """Check the installation, a line a part; exit status 1 if any is bad."""
    from cardsync.operations.doctor import examine

    settings = settings_with(data_dir=data_dir)
    with database(settings, say, migrated=False) as ready:
        lines = list(examine(ready, mail_server.check))
    if as_json:
        click.echo(json.dumps({"lines": [line._asdict() for line in lines]}))
    else:
        for line in lines:
            click.echo(f"{line.state:<4}  {line.part:<13}  {line.sentence}")
    if any(line.state == "bad" for line in lines):
        raise SystemExit(1)


def _replayed(url: str, objects: Path) -> str | None:
    # Polars takes long to import, and only this needs it.
    from cardsync.pricing.receipts.replayed_receipts import fault

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


def _line(one: Backup) -> dict[str, Any]:
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
@click.option("--dry-run", is_flag=True, help="Print what is to be done, and do nothing.")
@click.option(
    "--shards",
    type=click.IntRange(1, 1024),
    default=SHARDS,
    show_default=True,
    help="Parts that sellers are divided into, when the first table is spread.",
)
def db_distribute(dry_run: bool, shards: int) -> None:
    """Spread the tables of sellers over the nodes of a Citus cluster. Stop the service first. Call
    it again after a kill, or after a version with new tables: it does what is missing.
    """
    from cardsync.tables import spread_tables, tables_everywhere

    settings = settings_with()
    url = settings.migration_database_url or settings.database_url
    if url is None:
        raise CommandError("the embedded database is one machine: set CARDSYNC_DATABASE_URL")
    spread = [table.name for table in spread_tables()]
    places = Places(spread, [table.name for table in tables_everywhere()])
    steps = distribute(url, places, shards, say, dry_run=dry_run)
    if dry_run:
        for step in steps:
            click.echo("\n".join([f"-- {step.says}", *(f"{one};" for one in step.statements)]))
    click.echo(f"-- {len(steps)} steps" if dry_run else "the database is spread by seller")


@click.command("rotate-secret")
def rotate_secret() -> None:
    """Put a new secret in the place of the installation's, while the service runs or not. What was
    sealed with the old one is sealed anew; links in mails that were sent before end.
    """
    with database(settings_with(), say) as ready:
        done = rotate(ready, seal_anew)
    click.echo(f"{done.secrets} secrets of webhooks are sealed with the present secret")
    click.echo("the secret before it opens nothing any more")
    if done.lost:
        raise click.ClickException(
            f"{done.lost} secrets of webhooks were sealed with a secret that is not known here:"
            " their owners create new ones"
        )

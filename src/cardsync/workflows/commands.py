"""The commands `cardsync admin workflow …`: each calls one operation and prints its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cardsync.database.session import Database
from cardsync.processes.command_line import plain, show, with_database
from cardsync.releases.signing import load_key, public_key_of
from cardsync.workflows import pack_form, publish_packs
from cardsync.workflows.models import WorkflowPack, WorkflowPackKill

AS_JSON = click.option("--json", "as_json", is_flag=True)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
VERSION = click.IntRange(1, pack_form.MOST_VERSION)


@click.group()
def workflow() -> None:
    """Publish workflow packs for the agents, and kill versions that must not be used on."""


@workflow.command("publish")
@click.argument("file", type=FILE)
@click.option(
    "--key-file", type=FILE, required=True, help="The key that `admin release keygen` made."
)
@AS_JSON
def publish_pack(file: Path, key_file: Path, as_json: bool) -> None:
    """Check FILE, a pack.json, sign it and offer it to the agents."""
    key = load_key(key_file)
    draft = publish_packs.read_draft(file)

    async def put_out(database: Database) -> dict[str, Any]:
        async with database.shared() as session:
            return _pack_json(await publish_packs.publish(session, draft, key))

    show(with_database(put_out) | {"public_key": public_key_of(key)}, as_json)


@workflow.command("kill")
@click.argument("marketplace")
@click.argument("locale")
@click.argument("version", type=VERSION)
@click.option("--undo", is_flag=True, help="Take the kill back.")
def kill_pack(marketplace: str, locale: str, version: int, undo: bool) -> None:
    """Withdraw a version: agents stop using it, and wait for a newer one."""

    async def change(database: Database) -> bool:
        work = publish_packs.revive if undo else publish_packs.kill
        async with database.shared() as session:
            return await work(session, marketplace, locale, version)

    known = with_database(change)
    name = f"{marketplace} {locale} {version}"
    if undo and not known:
        raise click.ClickException(
            f"{name} is not killed; `cardsync admin workflow list` shows what is"
        )
    click.echo(f"{name} is {'no longer killed' if undo else 'killed'}")
    if not known:
        click.echo(
            f"no {name} was published here: is that the version you mean? --undo takes it back",
            err=True,
        )


@workflow.command("list")
@AS_JSON
def list_packs(as_json: bool) -> None:
    """Print everything published and killed."""

    async def read(database: Database) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        async with database.shared() as session:
            packs, kills = await publish_packs.listed(session)
            return [_pack_json(row) for row in packs], [_kill_json(row) for row in kills]

    packs, kills = with_database(read)
    if as_json:
        click.echo(json.dumps({"packs": packs, "kills": kills}))
        return
    for row in packs:
        click.echo(f"{_line(row)} published {row['published_at'][:10]}")
    for row in kills:
        click.echo(f"{_line(row)} killed {row['killed_at'][:10]}")


def _line(row: dict[str, Any]) -> str:
    return f"{row['marketplace']:<16} {row['locale']:<6} {row['version']:>10}"


def _pack_json(row: WorkflowPack) -> dict[str, Any]:
    names = ("marketplace", "locale", "version", "published_at", "signature")
    return {name: plain(getattr(row, name)) for name in names} | {"bytes": len(row.pack.encode())}


def _kill_json(row: WorkflowPackKill) -> dict[str, Any]:
    names = ("marketplace", "locale", "version", "killed_at")
    return {name: plain(getattr(row, name)) for name in names}

"""The commands `cardsync admin workflow …`: each calls one operation and prints its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cardsync.agents.workflows import pack_form
from cardsync.operations.processes.command_line import Result, plain, prints, say, with_database
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from cardsync.agents.workflows.publish_packs import WorkflowPack, WorkflowPackKill
    from cardsync.platform.database.session import Database

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
VERSION = click.IntRange(1, pack_form.MOST_VERSION)


@click.group()
def workflow() -> None:
    """Publish workflow packs for the agents, and kill versions that must no longer be used."""


@workflow.command("publish")
@prints
@click.argument("file", type=FILE)
@click.option(
    "--key-file", type=FILE, required=True, help="The key that `admin release keygen` made."
)
def publish_pack(file: Path, key_file: Path) -> Result:
    """Check FILE, a pack.json, sign it and offer it to the agents.

    Example: cardsync admin workflow publish pack.json --key-file release-key.pem
    """
    from cardsync.agents.releases.signing import load_key, public_key_of
    from cardsync.agents.workflows import publish_packs

    key = load_key(key_file)
    draft = publish_packs.read_draft(file)

    async def put_out(database: Database) -> JsonObject:
        async with database.shared() as session:
            return _pack_json(await publish_packs.publish(session, draft, key))

    return Result(with_database(put_out) | {"public_key": public_key_of(key)})


@workflow.command("kill")
@prints
@click.argument("marketplace")
@click.argument("locale")
@click.argument("version", type=VERSION)
@click.option("--undo", is_flag=True, help="Take the kill back.")
def kill_pack(marketplace: str, locale: str, version: int, undo: bool) -> Result:
    """Withdraw a version: agents stop using it, and wait for a newer version.

    Example: cardsync admin workflow kill tcgplayer en 7
    """
    from cardsync.agents.workflows import publish_packs

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
    if not known:
        say(f"no {name} was published here: is that the version you mean? --undo takes it back")
    pack = {"marketplace": marketplace, "locale": locale, "version": version}
    line = f"{name} is {'no longer killed' if undo else 'killed'}"
    return Result(pack | {"killed": not undo, "published": known}, [line])


@workflow.command("list")
@prints
def list_packs() -> Result:
    """Print everything published and killed.

    Example: cardsync admin workflow list
    """
    from cardsync.agents.workflows import publish_packs

    async def read(database: Database) -> tuple[list[JsonObject], list[JsonObject]]:
        async with database.shared() as session:
            packs, kills = await publish_packs.listed(session)
            return [_pack_json(row) for row in packs], [_kill_json(row) for row in kills]

    packs, kills = with_database(read)
    lines = [f"{_line(row)} published {row['published_at'][:10]}" for row in packs]
    lines += [f"{_line(row)} killed {row['killed_at'][:10]}" for row in kills]
    return Result({"packs": packs, "kills": kills}, lines)


def _line(row: dict[str, object]) -> str:
    return f"{row['marketplace']:<16} {row['locale']:<6} {row['version']:>10}"


def _pack_json(row: WorkflowPack) -> dict[str, object]:
    names = ("marketplace", "locale", "version", "published_at", "signature")
    return {name: plain(getattr(row, name)) for name in names} | {"bytes": len(row.pack.encode())}


def _kill_json(row: WorkflowPackKill) -> dict[str, object]:
    names = ("marketplace", "locale", "version", "killed_at")
    return {name: plain(getattr(row, name)) for name in names}

"""The commands `cardsync admin release …`: each calls one operation and prints its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cardsync.agents.releases.offer import PRODUCTS, STABLE
from cardsync.operations.processes.command_line import (
    Result,
    plain,
    prints,
    say,
    settings_with,
    with_database,
)
from cardsync.platform import clock
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from cardsync.agents.releases.models import Release
    from cardsync.platform.database.session import Database

PRODUCT = click.option("--product", type=click.Choice(PRODUCTS), required=True)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def release() -> None:
    """Publish versions of the agent and the desktop wrapper, and kill versions that must no longer
    run.
    """


@release.command("keygen")
@prints
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder of the new key.",
)
def keygen(out: Path) -> Result:
    """Make an Ed25519 key that signs releases; prints the public key, which agents pin.

    Example: cardsync admin release keygen --out ~/release-keys
    """
    from cardsync.agents.releases import signing

    path, public_key = signing.make_key(out)
    return Result({"key_file": str(path), "public_key": public_key})


@release.command("publish")
@prints
@click.argument("file", type=FILE)
@PRODUCT
@click.option("--version", required=True, help="By PEP 440, like 1.4.0.")
@click.option("--platform", required=True, help="os/arch, like linux/amd64.")
@click.option("--channel", default=STABLE, show_default=True)
@click.option(
    "--percentage",
    type=click.IntRange(0, 100),
    default=100,
    show_default=True,
    help="How many of a hundred installations are offered it.",
)
@click.option("--min-from", help="The oldest version that may update to this one at once.")
@click.option(
    "--expires-days",
    type=click.IntRange(1, 36_500),
    default=365,
    show_default=True,
)
@click.option("--key-file", type=FILE, required=True, help="The key that `keygen` made.")
def publish_release(
    file: Path,
    product: str,
    version: str,
    platform: str,
    channel: str,
    percentage: int,
    min_from: str | None,
    expires_days: int,
    key_file: Path,
) -> Result:
    """Sign FILE and offer it. Publishing it again changes its percentage, min-from and expiry.

    Example: cardsync admin release publish agent.whl --product agent --version 1.4.0
    --platform linux/amd64 --key-file ~/release-keys/release-key.pem
    """
    from cardsync.agents.releases import publish_releases, signing
    from cardsync.platform.storage import open_store

    settings = settings_with()
    key = signing.load_key(key_file)
    draft = publish_releases.read_draft(
        product,
        version,
        platform,
        channel,
        percentage,
        min_from,
        expires_days,
        clock.now(),
    )

    async def put_out(database: Database) -> Release:
        return await publish_releases.publish(database, open_store(settings), draft, file, key)

    release_json = _release_json(with_database(put_out, settings), settings.origin)
    return Result(release_json | {"public_key": signing.public_key_of(key)})


@release.command("kill")
@prints
@click.argument("version")
@PRODUCT
@click.option("--undo", is_flag=True, help="Take the kill of exactly this text back.")
def kill_version(version: str, product: str, undo: bool) -> Result:
    """Kill a version: it is offered no more, and computers that run it must update first.

    Example: cardsync admin release kill 1.3.2 --product agent
    """
    from cardsync.agents.releases import publish_releases

    async def change(database: Database) -> bool:
        async with database.shared() as session:
            if undo:
                return await publish_releases.revive(session, product, version)
            return await publish_releases.kill(session, product, version)

    known = with_database(change)
    if undo and not known:
        raise click.ClickException(
            f"{product} {version} is not killed; `cardsync admin release list` shows what is"
        )
    if not known:
        say(
            f"no {product} {version} was published here: is that the version you mean?"
            " --undo takes it back"
        )
    data = {"product": product, "version": version, "killed": not undo, "published": known}
    line = f"{product} {version} is {'no longer killed' if undo else 'killed'}"
    return Result(data, [line])


@release.command("list")
@prints
def list_releases() -> Result:
    """Print everything published and killed.

    Example: cardsync admin release list
    """
    from cardsync.agents.releases import publish_releases

    settings = settings_with()

    async def read(database: Database) -> tuple[list[JsonObject], list[JsonObject]]:
        async with database.shared() as session:
            releases, kills = await publish_releases.listed(session)
            killed = [
                {
                    "product": k.product,
                    "version": k.version,
                    "killed_at": plain(k.killed_at),
                }
                for k in kills
            ]
            return [_release_json(row, settings.origin) for row in releases], killed

    releases, kills = with_database(read, settings)
    lines = [
        f"{row['product']:<8} {row['version']:<12} {row['platform']:<16}"
        f" {row['channel']:<8} {row['percentage']:>3}%  until {row['expires_at'][:10]}"
        for row in releases
    ]
    lines += [
        f"{row['product']:<8} {row['version']:<12} killed {row['killed_at'][:10]}" for row in kills
    ]
    return Result({"releases": releases, "kills": kills}, lines)


def _release_json(row: Release, origin: str) -> JsonObject:
    from cardsync.agents.releases.offer import Published
    from cardsync.agents.releases.update import download_path
    from cardsync.platform.kit.struct_rows import struct_of

    names = (
        "product",
        "version",
        "platform",
        "channel",
        "percentage",
        "min_from",
        "expires_at",
        "published_at",
    )
    files = ("size", "sha256", "signature", "record_signature")
    release_json = {name: plain(getattr(row, name)) for name in (*names, *files)}
    release_json["release_signature"] = release_json.pop("record_signature")
    return release_json | {
        "release": json.loads(row.record),
        "download_url": origin + download_path(struct_of(Published, row)),
    }

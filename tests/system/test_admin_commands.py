"""Every command of `cardsync admin`, each as a process of its own, as an operator types it.

In the tests' own process all modules are loaded already. This alone finds a command whose process
lacks one, as `admin seller delete` once lacked some of the tables.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import psycopg
import pytest

from browsers import signed_in
from builders import a_csv, a_row, an_order
from cardsync.cli import program
from cardsync.platform.database.urls import libpq_url
from packs_builder import LOCALE, MARKET, a_pack

# The command, what it is given, and a text that it prints. The commands of a step run side by side;
# what they print as JSON is known to the steps after.
STEPS = [
    {
        "seller create": ("--name Ada --email {address} --json", "api_key"),
        "release keygen": ("--out {folder}/keys --json", "public_key"),
        "seller keep": ("{leaving_id}", "stays"),
    },
    {
        "seller set": ("{seller_id} store_name=Shop plan=founder", "store_name=Shop"),
        "key create": ("{seller_id} --json", "api_key"),
        "member add": ("{seller_id} --email bea.{address} --role staff --json", "invitations"),
        "token create": ("{seller_id} --scope mcp:read --json", "token_id"),
        "operator add": ("{address}", "is an operator"),
        "credits grant": ("{seller_id} 3 --reason gift --json", '"balance": 3'),
        "release publish": (
            "{folder}/build --product agent --version 9.0 --platform a/b --key-file {key_file} --json",
            "download_url",
        ),
        "workflow publish": ("{folder}/pack.json --key-file {key_file} --json", '"version": 1'),
    },
    {
        "seller show": ("{seller_id}", "store_name +Shop"),
        "key list": ("{seller_id}", "good"),
        "member list": ("{seller_id}", "invited"),
        "member role": ("{member_id} owner", "is owner"),
        "token list": ("{seller_id}", "good"),
        "operator list": ("", "{address}"),
        "credits history": ("{seller_id}", "balance 3"),
        "release list": ("", "9.0"),
        "workflow list": ("", f"{MARKET} +{LOCALE}.* published"),
        "seller export": ("{leaving_id} {folder}/shop.zip", "cards"),
    },
    {
        "key revoke": ("{key_id}", "is revoked"),
        "member reset-password": ("{member_id} --json", "invitations"),
        "token revoke": ("{token_id}", "is revoked"),
        "operator remove": ("{address}", "no operator any more"),
        "release kill": ("9.0 --product agent", "is killed"),
        "workflow kill": (f"{MARKET} {LOCALE} 1", "is killed"),
    },
    {
        "member remove": ("{member_id}", "is removed"),
        "seller delete": ("{leaving_id} --yes", "is gone"),
    },
    {"rotate-secret": ("", "opens nothing any more")},
    {"seller import": ("{folder}/shop.zip", "is seller")},
]


def commands_of(group: click.Command, *path: str) -> Iterator[str]:
    """The words of each command below a group."""
    if not isinstance(group, click.Group):
        yield " ".join(path)
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands_of(command, *path, name)


def test_every_admin_command_has_a_trial():
    tried = [command for step in STEPS for command in step]
    assert sorted(tried) == sorted(commands_of(program.commands["admin"]))


def ran(environment: dict[str, str], command: str, given: list[str]) -> str:
    """What the command prints."""
    process = subprocess.run(
        [sys.executable, "-m", "cardsync", "admin", *command.split(), *given],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (process.returncode, "Traceback" in process.stderr) == (0, False), (command, process)
    return process.stdout


async def a_leaving_shop(a_seller):
    """A shop with cards and orders whose owner asked for its deletion."""
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 4))))
    await seller.import_csv(a_csv(*(a_row(n, market="9.00") for n in range(1, 4))))
    await seller.orders([an_order()])
    owner = await signed_in(seller)
    asked = await owner.post("/api/account/deletion", json={"confirm": seller.email})
    assert asked.status_code == 200, asked.text
    return seller


@pytest.mark.night
async def test_every_admin_command_works_as_a_process_of_its_own(
    a_seller, settings, owner_url, tmp_path
):
    leaving = await a_leaving_shop(a_seller)
    environment = os.environ | {
        "CARDSYNC_DATABASE_URL": owner_url,
        "CARDSYNC_MIGRATION_DATABASE_URL": owner_url,
        "CARDSYNC_DATA_DIR": str(settings.data_dir),
    }
    (tmp_path / "build").write_bytes(b"an agent")
    (tmp_path / "pack.json").write_text(json.dumps(a_pack()))
    known: dict[str, Any] = {
        "folder": tmp_path,
        "address": "ada.of.commands@example.invalid",
        "leaving_id": leaving.id,
    }
    # As many at once as most machines have cores: a process loads for longer than it works.
    free = asyncio.Semaphore(2)

    async def tried(command: str, arguments: str, expected: str) -> str:
        given = [one.format_map(known) for one in arguments.split()]
        async with free:
            out = await asyncio.to_thread(ran, environment, command, given)
        assert re.search(expected.format_map(known), out), (command, out)
        return out

    for step in STEPS:
        trials = [tried(command, *trial) for command, trial in step.items()]
        for out in await asyncio.gather(*trials):
            if out.startswith("{"):
                known |= json.loads(out)
    assert left_of(owner_url, leaving.id) == []


def left_of(owner_url: str, seller_id: int) -> list[str]:
    """The tables that still name the seller, as the database's own catalog has them."""
    query = """
        SELECT c.relname FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'seller_id'
         WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
    """
    with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
        tables = [name for [name] in owner.execute(query).fetchall()]
        named = "SELECT EXISTS (SELECT FROM {} WHERE seller_id = %s)"
        return [
            name
            for name in tables
            if owner.execute(named.format(name), [seller_id]).fetchone() == (True,)
        ]

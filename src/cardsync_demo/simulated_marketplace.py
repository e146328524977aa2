"""Runs `cardsync demo --marketplace`: a simulated marketplace beside the demo, with its own seller,
and the settings with which the agent uses the marketplace in a browser.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from cardsync.platform.database.session import Database
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import sellers

ROOT: Final = Path(__file__).parents[2]
# The workflow pack that is shipped with the agent uses this port.
PORT: Final = 8765
_LINES: Final = ["magic", "pokemon", "yugioh", "lorcana", "flesh_and_blood"]


def must_be_here() -> None:
    """Check that the program's tests are installed. Raises UsageError."""
    if not (ROOT / "tests" / "marketplace" / "__main__.py").is_file():
        raise click.UsageError(
            "the simulated marketplace is part of the source: clone the repository and use"
            " `make run MARKETPLACE=1` there"
        )


@contextmanager
def running(folder: Path) -> Iterator[list[str]]:
    """Run the marketplace in a process that stores its state in `folder`. Yield the lines with its
    address and sign-in. Raises ClickException.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "tests.marketplace",
        "--port",
        str(PORT),
        "--state",
        str(folder / "state.json"),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as market:
        try:
            assert market.stdout is not None
            said = [market.stdout.readline().strip() for _ in range(3)]
            if not all(said):
                raise click.ClickException(
                    f"the simulated marketplace does not start; is port {PORT} taken?"
                )
            yield said
        finally:
            market.terminate()


async def seller_of(settings: Settings, folder: Path) -> Path:
    """Create the marketplace's seller if there is none; return the path of the agent's settings
    file.
    """
    config, shop = folder / "agent.toml", folder / "shop"
    if config.exists():
        return config
    assert settings.database_url is not None
    async with (
        Database.open(
            settings.database_url, pool=2, hot_pool=1, seal=partial(seal, settings)
        ) as opened,
        opened.shared() as session,
    ):
        made = await sellers.create_seller(
            session,
            name="Demo Browser Shop",
            email="browser@example.invalid",
            plan="founder",
            lines=_LINES,
            sync_mode="full",
        )
    shop.mkdir(parents=True, exist_ok=True)
    key = folder / "key.txt"
    key.touch(mode=0o600)
    key.write_text(made.api_key)
    (folder / "seller.json").write_text(
        json.dumps({"email": made.email, "password": made.password})
    )
    config.write_text(
        f'[shop.demo]\nserver = "http://{settings.bind}"\nfolder = "{shop}"\n'
        f'key_file = "{key}"\nadapter = "browser"\n\n'
        '[shop.demo.browser]\nmarketplace = "simulated"\nlocale = "en-US"\n'
    )
    return config


def show(console: Console, said: list[str], config: Path) -> None:
    account = json.loads((config.parent / "seller.json").read_text())
    console.rule("[bold]a marketplace to drive in a browser", align="left")
    for line in said:
        console.print(f"  {line}", markup=False)
    console.print("\n  Let the agent work there, and sign in when its browser asks you to:")
    console.print(f"  cardsync-agent run --config {config}", style="bold", markup=False)
    console.print(
        f"\n  What it brings: sign in here with {account['email']} and {account['password']}",
        markup=False,
    )

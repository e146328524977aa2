"""Runs `cardsync demo --public`: a demo shop that everybody may use, and that is created anew every
night.

The next shop is created in its own folder while the current one is still served, so that visitors
only wait for a restart. Each start of the program creates a new shop, too; old shops are not
reused.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Final

from cardsync.operations.processes import bind_address
from cardsync.operations.processes.child import Child
from cardsync.operations.processes.supervisor import (
    Stopped,
    database,
    processes,
    stop_on_signals,
    supervise,
    wait_until_ready,
)
from cardsync.platform import clock
from cardsync.platform.errors import CommandError
from cardsync.platform.settings import PREFIX, Settings
from cardsync_demo.story import say

# In UTC. This is early morning everywhere in the United States.
NIGHT: Final = time(9, 0)
# The creation of the next shop begins this long before the night, although it takes only about a
# minute. A failed attempt is repeated after the same time.
_AHEAD: Final = timedelta(minutes=10)
_NO_LETTERS_OUT: Final = {"OUTWARD_REQUESTS": "false", "PICTURE_HOSTS": "", "OTLP_URL": ""}
# All visitors share one account, so only addresses have a limit of sign-ins.
_ONE_ACCOUNT: Final = {"RATE_LIMIT_SIGN_IN_ACCOUNT": "0"}


class _NightIsOver(Exception):
    """Stops the current shop: the next shop is ready, and it is night."""


def run_public(settings: Settings, night: time) -> None:
    """Serve a public demo until SIGTERM or Ctrl-C. Raises CommandError."""
    if settings.database_url is not None:
        raise CommandError("a public demo brings its own database; unset CARDSYNC_DATABASE_URL")
    stop_on_signals()
    os.environ.setdefault(f"{PREFIX}LOG_LEVEL", "warning")
    for name, value in (_NO_LETTERS_OUT | _ONE_ACCOUNT).items():
        os.environ[PREFIX + name] = value
    shops = settings.data_dir / "public-demo"
    try:
        with bind_address.alone(settings):
            bind_address.find_free(settings, say)
            shutil.rmtree(shops, ignore_errors=True)
            say("making the shop, about a minute")
            next_shop = _Making(shops)
            next_shop.wait()
            while True:
                shop, next_shop = next_shop, _Making(shops, begin=False)
                _serve(settings, shop.folder, next_shop, _next(night))
                shutil.rmtree(shop.folder, ignore_errors=True)
    except Stopped:
        say("stopped")
    finally:
        os.environ.pop(f"{PREFIX}PUBLIC_DEMO", None)


def _next(night: time) -> datetime:
    now = clock.now()
    today = datetime.combine(now.date(), night, now.tzinfo)
    return today if today > now else today + timedelta(days=1)


class _Making:
    """The creation of a shop by a separate process, which exits when the shop is complete."""

    def __init__(self, shops: Path, *, begin: bool = True) -> None:
        self.folder = shops / f"{clock.now():%Y%m%d%H%M%S%f}"
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_at = clock.now()
        if begin:
            self.begin()

    def begin(self) -> None:
        """Start the creation. Start it again if it failed and some time has passed since."""
        if self._process is not None and (
            self._process.poll() in (None, 0) or clock.now() < self._begun_at + _AHEAD
        ):
            return
        self._begun_at = clock.now()
        shutil.rmtree(self.folder, ignore_errors=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        # The shop's own agent must be able to write, so the shop is not public while it is created.
        env = {name: value for name, value in os.environ.items() if name != f"{PREFIX}PUBLIC_DEMO"}
        env |= {f"{PREFIX}BIND": f"127.0.0.1:{port}", f"{PREFIX}METRICS_BIND": ""}
        place = ["--data-dir", str(self.folder)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cardsync", "demo", "--exit", "--port", port, *place],
            env=env,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )

    def is_made(self) -> bool:
        return self._process is not None and self._process.poll() == 0

    def wait(self) -> None:
        """Wait until the shop is complete. Raises CommandError."""
        assert self._process is not None
        try:
            status = self._process.wait()
        except BaseException:
            self.stop()
            raise
        if status:
            raise CommandError("the demo shop could not be made; the reason is above")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def _sign_in(folder: Path) -> str:
    made = json.loads((folder / "demo" / "seller.json").read_text())
    return f"{made['email']}:{made['password']}"


def _serve(settings: Settings, folder: Path, coming: _Making, night: datetime) -> None:
    """Serve a shop until it is night and the next shop is ready."""
    os.environ[f"{PREFIX}PUBLIC_DEMO"] = _sign_in(folder)
    # Backups are off, because each shop is replaced after a day.
    own = settings.model_copy(update={"data_dir": folder, "daily_backups": False})

    def look(_: list[Child]) -> None:
        now = clock.now()
        if now >= night - _AHEAD:
            coming.begin()
        if now >= night and coming.is_made():
            raise _NightIsOver

    try:
        with suppress(_NightIsOver), database(own, say) as ready, processes(ready) as children:
            wait_until_ready(ready, children, say)
            say(
                f"the public demo is at {ready.origin}; next made anew at {night:%Y-%m-%d %H:%M} UTC"
            )
            supervise(children, look)
    except BaseException:
        coming.stop()
        raise

"""The checks of `cardsync-agent doctor`: each examines one requirement and returns one line, which
never contains the key.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path

import httpx

from cardsync_agent import __version__, clock
from cardsync_agent.client import Client, KeyRefused, Refused, TryAgain
from cardsync_agent.commands import service
from cardsync_agent.marketplace.adapters import adapter_of
from cardsync_agent.marketplace.opening import Look
from cardsync_agent.shops.found_browser import find_browser, version_of
from cardsync_agent.shops.rest import rest_now
from cardsync_agent.shops.settings_file import Settings, Shop, key_of
from cardsync_agent.shops.status_file import read_status
from cardsync_agent.state import is_locked
from cardsync_agent.usage import UsageProblem

LEAST_FREE = 500_000_000
MOST_OFF = 60.0
TIMEOUT = httpx.Timeout(15.0, connect=10.0)


def ok(name: str, text: str) -> Look:
    return Look("ok", name, text)


def look(name: str, text: str) -> Look:
    return Look("look", name, text)


def note(name: str, text: str) -> Look:
    return Look("note", name, text)


def of_settings(settings: Settings) -> list[Look]:
    """Return the lines that concern all shops together."""
    count = len(settings.shops)
    shops = "1 shop" if count == 1 else f"{count} shops"
    looks = [ok("settings", f"{shops} in {settings.path}")]
    if any(shop.key for shop in settings.shops) and _is_open(settings.path):
        looks.append(look("settings", _close(settings.path, "holds a key")))
    return [*looks, _service(settings.path), ok("agent", f"version {__version__}")]


def of_shop(shop: Shop) -> list[Look]:
    return [
        *_connection(shop),
        *_marketplace(shop),
        _folder(shop.folder),
        _disk(shop.folder),
        _running(shop),
        *_rest(shop),
        *_update(shop),
    ]


def _connection(shop: Shop) -> list[Look]:
    server, answer = _server(shop.server)
    key_look = _key_file(shop)
    if answer is None:
        return [server, *([key_look] if key_look else [])]
    return [server, _clock(answer), key_look or _key(shop)]


def _server(address: str) -> tuple[Look, httpx.Response | None]:
    try:
        with httpx.Client(timeout=TIMEOUT) as client:
            began = clock.monotonic()
            answer = client.get(f"{address}/healthz")
            took = f"{(clock.monotonic() - began) * 1000:.0f} ms"
    except httpx.HTTPError as trouble:
        reason = str(trouble) or type(trouble).__name__
        text = (
            f"{address} cannot be reached ({reason}): is this computer online, the address right?"
        )
        return look("server", text), None
    if answer.status_code >= 500:
        text = f"{address} answers {answer.status_code}: the server has trouble, try again later"
        return look("server", text), None
    return ok("server", f"{address} answers in {took}{_version(answer)}"), answer


def _version(answer: httpx.Response) -> str:
    """Return the version part of a health answer; empty if the answer has none."""
    try:
        version = answer.json().get("version")
    except (ValueError, AttributeError):
        return ""
    return f", version {version}" if isinstance(version, str) else ""


def _clock(answer: httpx.Response) -> Look:
    try:
        there = parsedate_to_datetime(answer.headers.get("Date", ""))
    except ValueError:
        return note("clock", "the server does not say what time it is")
    off = (clock.now() - there.astimezone(UTC)).total_seconds()
    return clock_look(off)


def clock_look(off: float) -> Look:
    """Return the line about the clock; `off` is this computer's time minus the server's, in
    seconds.
    """
    if abs(off) <= MOST_OFF:
        return ok("clock", "agrees with the server's")
    side = "ahead of" if off > 0 else "behind"
    text = f"{clock.span(abs(off))} {side} the server's: let this computer set its clock by itself"
    return look("clock", text)


def _key_file(shop: Shop) -> Look | None:
    """Return the line about a problem of the key that shows without the server; None without a
    problem.
    """
    try:
        key_of(shop)
    except UsageProblem as problem:
        return look("key", f"{problem}; `cardsync-agent setup` asks for it")
    if shop.key_file is not None and _is_open(shop.key_file):
        return look("key", _close(shop.key_file, "holds the key"))
    return None


def _key(shop: Shop) -> Look:
    if (trouble := key_trouble(shop.server, key_of(shop))) is not None:
        return look("key", trouble)
    return ok("key", "the server accepts it")


def key_trouble(server: str, key: str) -> str | None:
    """Check whether the server accepts the key; return the problem with its remedy, or None."""
    client = Client(server, key)
    try:
        client.status()
    except KeyRefused as refused:
        advice = "make a new key in the dashboard, then `cardsync-agent setup` asks for it"
        return f"the server does not accept the key ({refused.code}): {advice}"
    except Refused as refused:
        return f"{server} does not answer like a cardsync server ({refused.status}): is it one?"
    except TryAgain as trouble:
        return f"{trouble}: try again later"
    finally:
        client.close()
    return None


def _marketplace(shop: Shop) -> list[Look]:
    try:
        adapter = adapter_of(shop)
    except UsageProblem as problem:
        return [look("marketplace", f"{problem}; update the sync app")]
    if shop.browser is None or shop.adapter != "browser":
        return [ok("marketplace", f"files by the folder {shop.folder}"), *adapter.looks(shop)]
    return [_browser(shop.browser.path), _session(shop), *adapter.looks(shop)]


def _browser(given: Path | None) -> Look:
    if find_spec("playwright") is None:
        text = "the sync app's part for it is missing: install `cardsync-agent[browser]`"
        return look("browser", text)
    if given is not None and not given.exists():
        return look("browser", f"{given} is not there: correct `path` in the settings")
    found = find_browser(os.environ) if given is None else None
    path = given or (found.path if found else None)
    if path is None:
        return look("browser", "none found: install Chrome, Edge or Chromium")
    # On Windows a browser would open a window instead of printing its version.
    version = None if sys.platform == "win32" else version_of(path)
    return ok("browser", f"{version or (found.name if found else path.name)} ({path})")


def _session(shop: Shop) -> Look:
    status = read_status(shop.home)
    if status is None:
        return note("session", "not known before the first run")
    if status.your_turn:
        return look("session", f"your turn: {status.your_turn}")
    if status.last_end_at is None:
        return note("session", "not known before the first sync has ended")
    when = clock.for_people(clock.read_rfc3339(status.last_end_at))
    return ok("session", f"no sign-in is asked for, as of {when}")


def _folder(folder: Path) -> Look:
    if not folder.exists():
        return look("folder", f"{folder} is not there: make it, or correct it in the settings")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-"):
            return ok("folder", f"{folder} can be written")
    except OSError as trouble:
        return look("folder", f"{folder} cannot be written ({trouble.strerror}): choose another")


def _disk(folder: Path) -> Look:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:.1f} GB free"
    return ok("disk", text) if free >= LEAST_FREE else look("disk", f"{text}: make room")


def _running(shop: Shop) -> Look:
    if not is_locked(shop.folder):
        text = "not running; `cardsync-agent run` or `cardsync-agent service install` starts it"
        return note("running", text)
    status = read_status(shop.home)
    pid = f" (process {status.pid}, version {status.version})" if status else ""
    return ok("running", f"a sync app works in the folder{pid}")


def _rest(shop: Shop) -> list[Look]:
    rest = rest_now(shop.home, shop.quiet)
    return [note("paused", rest.text)] if rest else []


def _update(shop: Shop) -> list[Look]:
    status = read_status(shop.home)
    return [note("update", status.update)] if status and status.update else []


def _service(config: Path) -> Look:
    plan = service.plan_here(config)
    if not service.is_installed(plan):
        return note("service", "not installed; `cardsync-agent service install` installs it")
    if not service.is_active(plan):
        text = "installed, not running: `cardsync-agent service install` starts it"
        return look("service", text)
    return ok("service", "installed and running")


def _is_open(path: Path) -> bool:
    """Return whether other users of this computer may read the file."""
    if sys.platform == "win32":  # its files are the person's own by default
        return False
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _close(path: Path, what: str) -> str:
    return f"{path} {what} and others may read it: `chmod 600 '{path}'`"

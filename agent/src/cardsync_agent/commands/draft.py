"""Stores the answers of `cardsync-agent setup` in the settings file and the key file, in both or in
neither.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cardsync_agent import durable
from cardsync_agent.shops.settings_file import Settings, settings_of
from cardsync_agent.shops.settings_text import Value, with_shop
from cardsync_agent.usage import UsageProblem


@dataclass
class Draft:
    """`key` is written into `key_file`; None leaves that file unchanged."""

    name: str
    server: str
    folder: Path
    key_file: Path
    key: str | None = field(repr=False)
    adapter: str
    marketplace: str = ""
    locale: str = ""
    browser: str = ""
    quiet: list[str] = field(default_factory=list)
    pace: dict[str, float] = field(default_factory=dict)


def table_of(draft: Draft, base: Path) -> dict[str, Value | dict[str, Value]]:
    """Return the shop's table of the settings file, without default values. Pure."""
    table: dict[str, Value | dict[str, Value]] = {
        "server": draft.server,
        "key_file": _relative(draft.key_file, base),
        "folder": str(draft.folder),
        "adapter": draft.adapter,
    }
    if draft.quiet:
        table["quiet_hours"] = draft.quiet
    if draft.adapter == "browser":
        browser: dict[str, Value] = {"marketplace": draft.marketplace, "locale": draft.locale}
        table["browser"] = browser | ({"path": draft.browser} if draft.browser else {})
    if draft.pace:
        table["pace"] = dict(draft.pace)
    return table


def own_key_file(name: str, config: Path) -> Path:
    """Return the path of the key file that `setup` writes for a shop."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "shop"
    return config.with_name(f"{slug}.key")


def write(draft: Draft, config: Path) -> Settings:
    """Write key and settings, readable only by their owner. Raises UsageProblem."""
    text = with_shop(_present(config), draft.name, table_of(draft, config.parent))
    settings = settings_of(text, config)
    settings.shop(draft.name)
    new_key = draft.key is not None and not draft.key_file.exists()
    with _undisturbed():
        try:
            config.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if draft.key is not None:
                durable.write(draft.key_file, f"{draft.key}\n".encode(), private=True)
            durable.write(config, text.encode(), private=True)
        except OSError as trouble:
            if new_key:
                draft.key_file.unlink(missing_ok=True)
            raise UsageProblem(f"the settings cannot be written: {trouble}") from trouble
    return settings


def _present(config: Path) -> str:
    try:
        return config.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as trouble:
        raise UsageProblem(f"the settings file {config} cannot be read: {trouble}") from trouble


def _relative(path: Path, base: Path) -> str:
    return path.name if path.parent == base else str(path)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay Ctrl-C until the files are written."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

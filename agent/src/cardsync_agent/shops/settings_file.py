"""The settings file: one table for each shop, in TOML. Reading validates everything that can be
validated without a server.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

import msgspec

from cardsync_agent.pace import Pace
from cardsync_agent.shops.quiet_hours import Span, read_span
from cardsync_agent.state import HOME
from cardsync_agent.usage import KEY_VARIABLE, UsageProblem, checked_key, checked_server

PROFILE = f"{HOME}/browser"
MOST_NAME = 60
PACE_NAMES = frozenset(f.name for f in fields(Pace))


@dataclass(frozen=True)
class BrowserChoice:
    """The browser of a shop; a `path` of None means automatic."""

    marketplace: str
    locale: str
    path: Path | None
    profile: Path


@dataclass(frozen=True)
class Shop:
    """One seller account: its server, key, folder, and marketplace."""

    name: str
    server: str
    folder: Path
    key_file: Path | None = None
    key: str | None = field(default=None, repr=False)
    adapter: str = "folder"
    browser: BrowserChoice | None = None
    quiet: tuple[Span, ...] = ()
    pace: Mapping[str, float] = field(default_factory=dict)
    # The keys whose signatures count for workflow packs, as the file has them.
    release_public_keys: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        return self.folder / HOME


@dataclass(frozen=True)
class Settings:
    path: Path
    shops: tuple[Shop, ...]
    release_public_keys: tuple[str, ...] = ()
    update_command: str | None = None

    def shop(self, name: str) -> Shop:
        for shop in self.shops:
            if shop.name == name:
                return shop
        names = ", ".join(shop.name for shop in self.shops)
        raise UsageProblem(f"{self.path} has no shop {name!r}; it has {names}")


class _Browser(msgspec.Struct, forbid_unknown_fields=True):
    marketplace: str
    locale: str = "en-US"
    path: str | None = None
    profile: str = PROFILE


class _Shop(msgspec.Struct, forbid_unknown_fields=True):
    server: str
    folder: str
    key_file: str | None = None
    key: str | None = None
    adapter: Literal["folder", "browser"] = "folder"
    browser: _Browser | None = None
    quiet_hours: str | list[str] = []
    pace: dict[str, float] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    shop: dict[str, _Shop] = {}
    release_public_keys: list[str] = []
    update_command: str | None = None


def read_settings(path: Path) -> Settings:
    """Read the settings file. Raises UsageProblem with one sentence, also for a missing file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise UsageProblem(
            f"there is no settings file {path}; `cardsync-agent setup` makes one"
        ) from None
    except (OSError, UnicodeDecodeError) as trouble:
        raise UsageProblem(f"the settings file {path} cannot be read: {trouble}") from trouble
    return settings_of(text, path)


def settings_of(text: str, path: Path) -> Settings:
    """Return the settings in `text`; relative paths are relative to the file's own folder."""
    try:
        raw = msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as trouble:
        raise UsageProblem(f"the settings file {path} is no TOML: {trouble}") from trouble
    except msgspec.ValidationError as trouble:
        raise UsageProblem(f"the settings file {path} does not fit: {trouble}") from trouble
    if not raw.shop:
        raise UsageProblem(f"{path} names no shop; `cardsync-agent setup` adds one")
    keys = tuple(raw.release_public_keys)
    made = (_shop(name, given, path) for name, given in raw.shop.items())
    shops = tuple(replace(shop, release_public_keys=keys) for shop in made)
    _check_apart(shops, path)
    return Settings(path, shops, keys, raw.update_command or None)


def checked_name(name: str) -> str:
    """Return a valid shop name. Raises UsageProblem."""
    if not (name.strip() == name and name and name.isprintable() and len(name) <= MOST_NAME):
        raise UsageProblem(f"a shop's name has 1 to {MOST_NAME} printable characters: {name!r}")
    return name


def key_of(shop: Shop, environ: Mapping[str, str] = os.environ) -> str:
    """Return the shop's key from its settings, its key file, or the environment. Raises
    UsageProblem.
    """
    key = shop.key or ""
    if not key and shop.key_file is not None:
        try:
            key = shop.key_file.read_text()
        except (OSError, UnicodeDecodeError) as trouble:
            raise UsageProblem(f"the key file cannot be read: {trouble}") from trouble
    key = (key or environ.get(KEY_VARIABLE, "")).strip()
    if not key:
        raise UsageProblem(f"no API key: give --key, --key-file or {KEY_VARIABLE}")
    return checked_key(key)


def _shop(name: str, given: _Shop, path: Path) -> Shop:
    where = f"shop {name!r} of {path}"
    spans = [given.quiet_hours] if isinstance(given.quiet_hours, str) else given.quiet_hours
    try:
        quiet = tuple(read_span(span) for span in spans if span)
    except ValueError as trouble:
        raise UsageProblem(f"{where}: {trouble}") from trouble
    for figure, seconds in given.pace.items():
        if figure not in PACE_NAMES or not seconds > 0:
            raise UsageProblem(f"{where}: pace has no {figure} of {seconds} seconds")
    if given.adapter == "browser" and given.browser is None:
        raise UsageProblem(f"{where}: adapter browser needs a table [shop.{name}.browser]")
    folder = _place(given.folder, path.parent)
    return Shop(
        name=checked_name(name),
        server=checked_server(given.server, f"server of {where}"),
        folder=folder,
        key_file=_place(given.key_file, path.parent) if given.key_file else None,
        key=given.key,
        adapter=given.adapter,
        browser=_browser(given.browser, folder) if given.browser else None,
        quiet=quiet,
        pace=given.pace,
    )


def _browser(given: _Browser, folder: Path) -> BrowserChoice:
    path = Path(given.path).expanduser() if given.path else None
    return BrowserChoice(given.marketplace, given.locale, path, _place(given.profile, folder))


def _place(text: str, base: Path) -> Path:
    return (base / Path(text).expanduser()).resolve()


def _check_apart(shops: tuple[Shop, ...], path: Path) -> None:
    """Refuse shared folders and profiles: two shops with one folder would take each other's files,
    and with one browser profile they would work in each other's account.
    """
    taken: dict[Path, str] = {}
    for shop in shops:
        places = {"folder": shop.folder}
        if shop.browser is not None and shop.adapter == "browser":
            places["profile"] = shop.browser.profile
        for what, place in places.items():
            if (other := taken.setdefault(place, shop.name)) != shop.name:
                raise UsageProblem(
                    f"{path}: the shops {other!r} and {shop.name!r} need a {what} each,"
                    f" not both {place}"
                )

"""Chooses the release that an installation is offered, and whether it must update. Pure.

Versions are compared by PEP 440. An unreadable installed version gets no offer, unless the kill
list contains exactly that text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated

import msgspec
from packaging.version import InvalidVersion, Version

from cardsync.platform.kit.struct_rows import Reads

PRODUCTS = ("agent", "desktop")
STABLE = "stable"
LONGEST_VERSION = 200
NONE_INSTALLED = "0"

# Python, Go, Docker, Windows and Apple name the same machine differently.
_ALIASES = {
    "x86_64": "amd64",
    "x64": "amd64",
    "aarch64": "arm64",
    "i686": "386",
    "i386": "386",
    "x86": "386",
    "macos": "darwin",
    "osx": "darwin",
    "win32": "windows",
}


def _version_or_none(text: str | None) -> Version | None:
    return Version(text) if text else None


class Published(msgspec.Struct, frozen=True):
    """One artifact that the operator published."""

    product: str
    version: Annotated[Version, Reads(Version)]
    platform: str
    channel: str
    percentage: int
    min_from: Annotated[Version | None, Reads(_version_or_none)]
    expires_at: datetime
    storage_key: str
    size: int
    sha256: str
    signature: str
    record: str
    record_signature: str

    @property
    def file_name(self) -> str:
        return self.storage_key.rpartition("/")[2]


@dataclass(frozen=True)
class Shelf:
    """One product's releases, newest first, and its killed versions: `kills` are the killed
    versions as the operator wrote them, `killed` the same versions parsed.
    """

    releases: tuple[Published, ...] = ()
    kills: frozenset[str] = frozenset()
    killed: frozenset[Version] = frozenset()

    def has_killed(self, version: Version) -> bool:
        return version in self.killed


@dataclass(frozen=True)
class Installation:
    """An installation that asks for an update.

    `seat` is stable for one installation and decides its place in a staged roll-out.
    """

    seat: str
    version: str | None
    platform: str | None
    channel: str = STABLE


@dataclass(frozen=True)
class Offer:
    """The answer: `must_update` without a release means that the version was killed and there is no
    update yet.
    """

    must_update: bool
    release: Published | None


def shelve(releases: list[Published], kills: set[str]) -> Shelf:
    newest_first = sorted(
        releases,
        key=lambda r: (r.version, r.platform, r.sha256),
        reverse=True,
    )
    killed = {version for text in kills if (version := read_version(text)) is not None}
    return Shelf(tuple(newest_first), frozenset(kills), frozenset(killed))


@lru_cache(maxsize=1024)
def read_version(text: str) -> Version | None:
    if len(text) > LONGEST_VERSION:
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None


@lru_cache(maxsize=1024)
def same_platform(platform: str) -> str:
    """Return one spelling for `linux/x86_64` and `Linux/amd64`, so that they compare equal."""
    return "/".join(_ALIASES.get(part, part) for part in platform.strip().lower().split("/"))


def choose(shelf: Shelf, asks: Installation, now: datetime) -> Offer:
    """Return the newest release that fits this installation and is newer than the installed
    version.
    """
    text = (asks.version or "").strip() or NONE_INSTALLED
    installed = read_version(text)
    must_update = text in shelf.kills or (installed is not None and shelf.has_killed(installed))
    if installed is None and not must_update:
        return Offer(False, None)
    fitting = (r for r in _newer(shelf, installed) if _fits(r, asks, installed, now))
    # An installation of a killed version is offered the update in any stage of the roll-out, but
    # no release at 0 percent, which the operator has withdrawn.
    offered = next(
        (
            r
            for r in fitting
            if (must_update and r.percentage > 0) or takes_part(asks.seat, r.version, r.percentage)
        ),
        None,
    )
    return Offer(must_update, offered)


def _newer(shelf: Shelf, installed: Version | None) -> Iterator[Published]:
    """Yield newer releases, newest first, without killed releases."""
    for release in shelf.releases:
        if installed is not None and release.version <= installed:
            return
        if not shelf.has_killed(release.version):
            yield release


def _fits(
    release: Published,
    asks: Installation,
    installed: Version | None,
    now: datetime,
) -> bool:
    if release.channel != asks.channel or release.expires_at <= now:
        return False
    if asks.platform and same_platform(release.platform) != same_platform(asks.platform):
        return False
    # A version older than `min_from` must first update to a release in between. An unreadable
    # version gets no release with a `min_from`.
    return release.min_from is None or (installed is not None and installed >= release.min_from)


def takes_part(seat: str, version: Version, percentage: int) -> bool:
    """Return whether a roll-out at `percentage` includes this seat.

    A higher percentage only adds seats. The included seats differ from version to version.
    """
    digest = hashlib.sha256(f"{seat}/{version}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < percentage

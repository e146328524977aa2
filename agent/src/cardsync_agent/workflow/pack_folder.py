"""Stores the workflow packs and decides which pack is in use for each marketplace and locale: a
pack that is shipped with the program, a pack that this computer's person has recorded, or a pack
that was fetched from the server and verified. The newest pack is used; workflows that it lacks are
taken from the recording.

An older version is never used again: the highest version that was ever used is stored in
DIR/.cardsync-agent, and a lower version is refused. A version that the operator has withdrawn is
not used. A fetched file is written atomically, and verified again at each start.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cardsync_agent import durable
from cardsync_agent.client import Client, PackOffer
from cardsync_agent.events import Reporter
from cardsync_agent.signed_release import Untrusted
from cardsync_agent.step_ends import StepFailed
from cardsync_agent.workflow.pack import BadPack, Pack, read
from cardsync_agent.workflow.recordings import carried, completed
from cardsync_agent.workflow.signed_pack import Wanted, trusted

MEMORY: Final = "memory.json"
PACKS_VARIABLE: Final = "CARDSYNC_AGENT_PACKS"
_CANNOT_READ: Final = (
    "the sync app cannot read {file}, where it keeps which packs it has used: {why}"
)


class NoPack(StepFailed):
    """There is no pack that may be used now; the step fails with this sentence."""


class Remembered(msgspec.Struct):
    """`used` is the highest version ever used. `killed` are the versions that the operator has
    withdrawn, as last reported.
    """

    used: int = 0
    killed: list[int] = []


def choose(held: Collection[int], used: int, killed: Collection[int]) -> int:
    """Return the newest of the available versions that may be used; `used` is the highest version
    ever used. Raises NoPack. Pure.
    """
    usable = [version for version in held if version >= used and version not in killed]
    if usable:
        return max(usable)
    newest = max(held, default=0)
    if (last := max(newest, used)) in killed:
        raise NoPack(f"pack {last} was withdrawn; waiting for a newer one")
    if newest:
        text = f"pack {newest} is older than pack {used}, which was used before"
        raise NoPack(f"{text}; waiting for a newer one")
    raise NoPack("there is no pack for this marketplace yet; waiting for one")


def recorded_pack(home: Path, marketplace: str) -> Path:
    """Return the file of this person's recordings."""
    return home / "packs" / "recorded" / f"{marketplace}.json"


def packs_of_program() -> Path:
    """Return the folder in PACKS_VARIABLE, or else the folder of the packs that are shipped with
    the program.
    """
    if given := os.environ.get(PACKS_VARIABLE):
        return Path(given)
    packaged = Path(__file__).parents[1] / "packs"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "packs"


class PackFolder:
    """`origins` are the origins that the seller's configuration allows for a marketplace, in
    addition to those of the shipped pack.
    """

    def __init__(
        self,
        home: Path,
        keys: Sequence[Ed25519PublicKey],
        say: Reporter,
        *,
        origins: Mapping[str, Collection[str]] | None = None,
        of_program: Path | None = None,
    ) -> None:
        self._home, self._keys, self._say = home / "packs", keys, say
        self._origins = origins or {}
        self._of_program = of_program or packs_of_program()
        # Packs that were read and verified since the start: shipped, recorded, and fetched.
        self._shipped: dict[str, Pack | None] = {}
        self._recorded: dict[str, Pack | None] = {}
        self._fetched: dict[str, Pack | None] = {}

    def in_use(self, marketplace: str, locale: str) -> Pack:
        """Return the pack to work with, and store that it was used. Raises NoPack."""
        pack = self.newest(marketplace, locale)
        memory = self._memory()
        known = memory.get(_name(marketplace, locale), Remembered())
        if pack.version > known.used:
            known.used = pack.version
            self._remember(memory | {_name(marketplace, locale): known})
        return pack

    def newest(self, marketplace: str, locale: str) -> Pack:
        """Return the pack as `in_use` does, but without storing that it was used; it is for adding
        a recording and for inspection.
        """
        pack = self._chosen(marketplace, locale)
        recorded = self._recorded_pack(marketplace, locale)
        return pack if recorded is None else completed(pack, recorded)

    def _chosen(self, marketplace: str, locale: str) -> Pack:
        known = self._memory().get(_name(marketplace, locale), Remembered())
        held = self._held(marketplace, locale)
        return held[choose(held, known.used, known.killed)]

    def about_recording(self, marketplace: str, locale: str) -> str | None:
        """Return which parts of this person's recording are used, if a newer pack is in use. Raises
        NoPack.
        """
        recorded, pack = self._recorded_pack(marketplace, locale), self._chosen(marketplace, locale)
        if recorded is None or recorded.version > pack.version or pack == recorded:
            return None
        kept = sorted(carried(pack, recorded))
        mine = (
            f"used of your recording: {', '.join(kept)}" if kept else "nothing is used of your own"
        )
        return f"version {pack.version} is newer than your recording {recorded.version}; {mine}"

    def fetch(self, client: Client, marketplace: str, locale: str) -> Pack | None:
        """Request a newer pack and the withdrawn versions from the server; return the pack if there
        is one and it is trusted. A refused pack is reported once, and nothing of it is stored.

        Raises TryAgain and Refused, as each call of the client, and NoPack.
        """
        newest = max(self._given(marketplace, locale), default=0)
        offer = client.workflow_pack(marketplace, locale, newest)
        used = self._note_killed(_name(marketplace, locale), offer)
        if offer.signed is None:
            return None
        try:
            pack = self._believed(offer.signed, marketplace, locale)
            _check_newer(pack.version, newest, used, offer.killed)
        except Untrusted as reason:
            self._refuse("the workflow pack on offer", marketplace, locale, reason)
            return None
        self._keep(offer.signed, pack)
        return pack

    def _held(self, marketplace: str, locale: str) -> dict[int, Pack]:
        """Return the available packs by version. Of the same version, the shipped pack has
        precedence over the fetched pack, and both over the recorded pack.
        """
        recorded = self._recorded_pack(marketplace, locale)
        mine = {} if recorded is None else {recorded.version: recorded}
        return mine | self._given(marketplace, locale)

    def _given(self, marketplace: str, locale: str) -> dict[int, Pack]:
        """Return the operator's packs, which no recording may hide."""
        both = (self._fetched_pack(marketplace, locale), self._shipped_pack(marketplace, locale))
        return {pack.version: pack for pack in both if pack is not None}

    def _shipped_pack(self, marketplace: str, locale: str) -> Pack | None:
        name = _name(marketplace, locale)
        if name not in self._shipped:
            files = sorted(self._of_program.glob(f"{marketplace}/pack*.json"))
            self._shipped[name] = _first_of(
                files, "that came with the sync app", marketplace, locale
            )
        return self._shipped[name]

    def _recorded_pack(self, marketplace: str, locale: str) -> Pack | None:
        name = _name(marketplace, locale)
        if name not in self._recorded:
            file = recorded_pack(self._home.parent, marketplace)
            files = [file] if file.exists() else []
            self._recorded[name] = _first_of(files, "that you recorded", marketplace, locale)
        return self._recorded[name]

    def _fetched_pack(self, marketplace: str, locale: str) -> Pack | None:
        name = _name(marketplace, locale)
        if name not in self._fetched:
            self._fetched[name] = self._verified(marketplace, locale)
        return self._fetched[name]

    def _verified(self, marketplace: str, locale: str) -> Pack | None:
        """Return the pack that an earlier run fetched, if its signature still verifies."""
        try:
            content = self._file(_name(marketplace, locale)).read_bytes()
            return self._believed(content, marketplace, locale)
        except FileNotFoundError:
            return None
        except (OSError, Untrusted) as reason:
            self._refuse("the workflow pack that was fetched before", marketplace, locale, reason)
            return None

    def _believed(self, content: bytes, marketplace: str, locale: str) -> Pack:
        allowed, waits = set(self._origins.get(marketplace, ())), set[str]()
        for own in (self._shipped_pack, self._recorded_pack):
            if pack := own(marketplace, locale):
                allowed |= set(pack.origins)
                waits |= set(pack.sign_in_origins)
        wanted = Wanted(marketplace, locale, frozenset(allowed), frozenset(waits))
        return trusted(content, self._keys, wanted)

    def _refuse(self, what: str, marketplace: str, locale: str, reason: Exception) -> None:
        self._say.standing(
            f"pack {_name(marketplace, locale)}",
            "pack_refused",
            f"{what} for {marketplace} is refused: {reason}",
            problem=True,
            marketplace=marketplace,
            locale=locale,
            reason=str(reason),
        )

    def _keep(self, signed: bytes, pack: Pack) -> None:
        name = _name(pack.marketplace, pack.locale)
        self._write(self._file(name), signed)
        self._fetched[name] = pack
        self._say(
            "pack_fetched",
            f"version {pack.version} of the workflow pack for {pack.marketplace} was fetched",
            marketplace=pack.marketplace,
            locale=pack.locale,
            version=pack.version,
        )

    def _file(self, name: str) -> Path:
        return self._home / f"{name}.json"

    def _note_killed(self, name: str, offer: PackOffer) -> int:
        """Store the withdrawn versions; return the highest version ever used."""
        memory = self._memory()
        known = memory.get(name, Remembered())
        if set(known.killed) != offer.killed:
            known.killed = sorted(offer.killed)
            self._remember(memory | {name: known})
        return known.used

    def _memory(self) -> dict[str, Remembered]:
        file = self._home / MEMORY
        try:
            return msgspec.json.decode(file.read_bytes(), type=dict[str, Remembered])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as trouble:
            # Without this file an older pack could be used, so no pack is used until the person
            # decides.
            why = f"{trouble}; delete it if you have changed nothing there"
            raise NoPack(_CANNOT_READ.format(file=file, why=why)) from None

    def _remember(self, memory: dict[str, Remembered]) -> None:
        self._write(self._home / MEMORY, msgspec.json.encode(memory))

    def _write(self, target: Path, content: bytes) -> None:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write(target, content)


def _check_newer(version: int, newest: int, used: int, killed: Collection[int]) -> None:
    if version < used:
        raise Untrusted(f"it is version {version}, and version {used} was used before")
    if version <= newest:
        raise Untrusted(f"it is version {version}, which is not newer than {newest}")
    if version in killed:
        raise Untrusted(f"version {version} was withdrawn")


def _name(marketplace: str, locale: str) -> str:
    return f"{marketplace}-{locale}"


def _first_of(files: Sequence[Path], whose: str, marketplace: str, locale: str) -> Pack | None:
    packs = (_read_own(file, whose) for file in files)
    wanted = (marketplace, locale)
    return next((pack for pack in packs if (pack.marketplace, pack.locale) == wanted), None)


def _read_own(path: Path, whose: str) -> Pack:
    """Read a pack that needs no signature, because it came with the program or from this person.
    Raises NoPack.
    """
    try:
        return read(path.read_bytes())
    except (OSError, BadPack) as problem:
        raise NoPack(f"the pack {path} {whose} cannot be used: {problem}") from None

"""Fetches updates of the agent itself that the heartbeat offers: it places the verified file and
its record into DIR/updates/VERSION-HASH/, reports `update_ready`, and starts the update command
once. The installer replaces the agent; without pinned keys nothing is fetched.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cardsync_agent import __version__, clock, durable
from cardsync_agent.client import Client, Heartbeat, Offer, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.pace import Pace, Stop, backoff
from cardsync_agent.signed_release import Release, Untrusted, check_bytes, trusted
from cardsync_agent.state import StateProblem, Store
from cardsync_agent.usage import KEY_VARIABLE

MOST_BYTES = 500_000_000
RECORD = "release.json"
COMMAND_LOG = "update-command.log"
_OURS = re.compile(r".+-[0-9a-f]{12}")


@dataclass(frozen=True)
class UpdatePolicy:
    """The seller's policy: `keys` verify updates and workflow packs, `command` starts when an
    update is ready, and `fetches` is whether this process fetches updates.
    """

    keys: Sequence[Ed25519PublicKey]
    command: str | None = None
    fetches: bool = True


class Updates:
    def __init__(
        self,
        policy: UpdatePolicy,
        platform: str,
        client: Client,
        store: Store,
        folder: Path,
        say: Reporter,
        pace: Pace,
        stop: Stop,
    ) -> None:
        self._policy, self._platform, self._client, self._store = policy, platform, client, store
        self._say, self._pace, self._stop = say, pace, stop
        self._staging, self._updates = store.home / "updates", folder / "updates"
        self._told: set[str] = set()
        self._failures, self._not_before = 0, 0.0
        self._offer: Offer | None = None
        self._handed: Path | None = None
        self._running: subprocess.Popen[bytes] | None = None

    def consider(self, heartbeat: Heartbeat) -> None:
        """Work on the offered update for a while; this is called again with every heartbeat until
        the update is installed.
        """
        self._look_after_command()
        if not heartbeat.update_available:
            return
        version = heartbeat.latest_version
        text = f"version {version or 'newer than this'} of the sync app is available"
        self._tell("update_available", text, latest_version=version)
        if self._policy.keys and self._policy.fetches:
            self._pursue(heartbeat.offer or Offer())

    def _pursue(self, offer: Offer) -> None:
        if offer != self._offer:
            self._offer, self._failures, self._not_before = offer, 0, 0.0
        if clock.monotonic() < self._not_before:
            return
        try:
            self._take(offer)
        except Untrusted as reason:
            self._wait(self._pace.update_again)
            text = f"the update on offer is refused: {reason}"
            self._tell(
                "update_refused",
                text,
                problem=True,
                latest_version=offer.version,
                reason=str(reason),
            )
        except (TryAgain, Refused, OSError) as trouble:
            self._failures += 1
            delay = backoff(self._failures, self._pace)
            self._wait(delay)
            self._say.retrying("fetching the update", trouble, delay)
        except StateProblem:
            raise
        except Exception as bug:  # syncing must continue without the update
            self._wait(self._pace.update_again)
            self._tell(
                "problem",
                f"the update failed: internal error: {type(bug).__name__}: {bug}",
                problem=True,
            )

    def _wait(self, seconds: float) -> None:
        self._not_before = clock.monotonic() + seconds

    def _take(self, offer: Offer) -> None:
        release = trusted(offer, self._policy.keys, __version__, self._platform, clock.now())
        target = self._updates / f"{release.version}-{release.sha256[:12]}"
        if target == self._handed:  # the installer uses the files now
            return
        file = self._placed_before(release, target)
        if file is None:
            if self._is_used(release, target) or not self._bring(release, offer, target):
                return
            file = self._check_placed(release, target)
        self._remember_placed(release.sha256)
        self._handed = target
        text = f"version {release.version} of the sync app is ready to install in {target}"
        self._tell(
            "update_ready",
            text,
            latest_version=str(release.version),
            path=str(target),
            sha256=release.sha256,
        )
        self._start_command(release, file)

    def _placed_before(self, release: Release, target: Path) -> Path | None:
        """Return the file that an earlier attempt placed.

        A file that was altered since then is removed, and fetched again.
        """
        if not target.exists() and not target.is_symlink():
            return None
        try:
            return self._check_placed(release, target)
        except Untrusted as reason:
            if not self._is_used(release, target):
                text = (
                    f"the file in {target} is not the update that was signed,"
                    f" and is fetched again: {reason}"
                )
                self._tell("problem", text, problem=True)
                # The journal is written first: after a kill in between, the installer must not seem
                # to have taken the missing file.
                self._remember_placed(None)
                _remove(target)
            return None

    def _is_used(self, release: Release, target: Path) -> bool:
        """Return whether the update was placed before, and since then removed or passed to the
        update command. Then the installer may use or remove the folder's files.
        """
        memory = self._store.memory
        if memory.update_placed != release.sha256:
            return False
        return memory.update_commanded == release.sha256 or not _files(target)

    def _check_placed(self, release: Release, target: Path) -> Path:
        """Return the one file in the folder, if a pinned key signed both it and the record beside
        it.
        """
        files = _files(target)
        if (
            target.is_symlink()
            or len(files) != 1
            or files[0].is_symlink()
            or not files[0].is_file()
        ):
            raise Untrusted("it is not one file and its record")
        proof = _read_proof(target / RECORD, release)
        keys = self._policy.keys
        check_bytes(
            trusted(proof, keys, __version__, self._platform, clock.now()),
            proof,
            keys,
            files[0].read_bytes(),
        )
        return files[0]

    def _bring(self, release: Release, offer: Offer, target: Path) -> bool:
        stage = self._staging / release.sha256
        file = stage / _file_name(offer.url)
        if not self._fetch(offer, file):
            return False
        self._verify(release, offer, file)
        self._place(offer, stage, target)
        return True

    def _fetch(self, offer: Offer, file: Path) -> bool:
        """Continue the download; return False when the current slice of time is over."""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stray in [*self._staging.iterdir(), *file.parent.iterdir()]:
            if stray not in (file, file.parent):
                _remove(stray)
        ends = clock.monotonic() + self._pace.update_slice
        return self._client.download(
            offer.url,
            file,
            MOST_BYTES,
            lambda: clock.monotonic() < ends and not self._stop.requested,
        )

    def _verify(self, release: Release, offer: Offer, file: Path) -> None:
        try:
            check_bytes(release, offer, self._policy.keys, file.read_bytes())
        except Untrusted:
            file.unlink()
            raise

    def _place(self, offer: Offer, stage: Path, target: Path) -> None:
        """Place the file and its record together or not at all; earlier updates are removed."""
        self._updates.mkdir(exist_ok=True)
        for earlier in self._updates.iterdir():
            if _OURS.fullmatch(earlier.name):
                _remove(earlier)
        proof = {
            "release": offer.record,
            "release_signature": offer.record_signature,
            "signature": offer.signature,
        }
        durable.write(stage / RECORD, json.dumps(proof, indent=1).encode())
        durable.place_folder(stage, target)

    def _remember_placed(self, sha256: str | None) -> None:
        if self._store.memory.update_placed != sha256:
            self._store.memory.update_placed = sha256
            self._store.save()

    def _start_command(self, release: Release, file: Path) -> None:
        memory = self._store.memory
        if not self._policy.command or memory.update_commanded == release.sha256:
            return
        # The start is journaled first: if the installer ends this agent half-way, the next agent
        # must not start the installer again.
        memory.update_commanded = release.sha256
        self._store.save()
        arguments = [*shlex.split(self._policy.command, posix=os.name != "nt"), str(file)]
        self._say("update_command", f"starting {' '.join(arguments)}", command=arguments)
        try:
            self._running = self._started(arguments)
        except OSError as trouble:
            self._say("problem", f"the update command cannot be started: {trouble}", problem=True)

    def _started(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        # The command has its own output, because programs read the agent's output. The command does
        # not get the key, because it does not need the key.
        environ = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
        with (self._store.home / COMMAND_LOG).open("ab") as log:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                start_new_session=True,
            )

    def _look_after_command(self) -> None:
        if self._running is None or (code := self._running.poll()) is None:
            return
        self._running = None
        text = (
            f"the update command ended with {code};"
            f" what it said is in {self._store.home / COMMAND_LOG}"
        )
        self._say("update_command_ended", text, problem=code != 0, exit_code=code)

    def _tell(self, event: str, text: str, *, problem: bool = False, **fields: object) -> None:
        """Report an event once in this agent's life, not with every heartbeat."""
        if text not in self._told:
            self._told.add(text)
            self._say(event, text, problem=problem, detail=False, **fields)


def _file_name(url: str) -> str:
    """Return the artifact's file name with only plain characters, because the name is not signed.
    The name's ending shows the kind of file.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", unquote(urlsplit(url).path).rpartition("/")[2])[
        -100:
    ].lstrip(".-")
    return name if name and name != RECORD else "update"


def _files(target: Path) -> list[Path]:
    return [path for path in target.iterdir() if path.name != RECORD] if target.is_dir() else []


def _read_proof(path: Path, release: Release) -> Offer:
    """Read the record beside the file as an offer of exactly this release."""
    try:
        proof = json.loads(path.read_bytes())
        record, signatures = proof["release"], (proof["signature"], proof["release_signature"])
    except (FileNotFoundError, IsADirectoryError, ValueError, KeyError, TypeError) as trouble:
        raise Untrusted(f"its record cannot be read ({type(trouble).__name__})") from trouble
    if not isinstance(record, dict) or not all(
        isinstance(signature, str) for signature in signatures
    ):
        raise Untrusted("its record is no record")
    return Offer(
        signature=signatures[0],
        sha256=release.sha256,
        record=record,
        record_signature=signatures[1],
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()

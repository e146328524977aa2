"""Updates of the agent itself. In: the heartbeat's offer. Out: DIR/updates/VERSION-HASH/ with the verified file and its record, told by
`update_ready`, and the update command started once. Replacing the agent is the installer's work; without pinned keys nothing is fetched.
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

MOST_BYTES = 500_000_000
RECORD = "release.json"
COMMAND_LOG = "update-command.log"
KEY_VARIABLE = "CARDSYNC_AGENT_KEY"
_OURS = re.compile(r".+-[0-9a-f]{12}")


@dataclass(frozen=True)
class UpdatePolicy:
    """What the seller allows: whose signatures count, and what to start when an update is ready."""

    keys: Sequence[Ed25519PublicKey]
    command: str | None = None


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
        self._running: subprocess.Popen[bytes] | None = None

    def consider(self, heartbeat: Heartbeat) -> None:
        """Work towards the update on offer for a while; called again with every heartbeat until it is installed."""
        self._look_after_command()
        if not heartbeat.update_available:
            return
        version = heartbeat.latest_version
        text = f"version {version or 'newer than this'} of the agent is available"
        self._tell("update_available", text, latest_version=version)
        if self._policy.keys:
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
            self._tell("update_refused", text, problem=True, latest_version=offer.version, reason=str(reason))
        except (TryAgain, Refused, OSError) as trouble:
            self._failures += 1
            delay = backoff(self._failures, self._pace)
            self._wait(delay)
            self._say.retrying("fetching the update", trouble, delay)
        except StateProblem:
            raise
        except Exception as bug:  # syncing must go on without the update
            self._wait(self._pace.update_again)
            self._tell("problem", f"the update failed: internal error: {type(bug).__name__}: {bug}", problem=True)

    def _wait(self, seconds: float) -> None:
        self._not_before = clock.monotonic() + seconds

    def _take(self, offer: Offer) -> None:
        release = trusted(offer, self._policy.keys, __version__, self._platform, clock.now())
        target = self._updates / f"{release.version}-{release.sha256[:12]}"
        # Placed before: whoever took it away has used it.
        if self._store.memory.update_placed != release.sha256 and not target.exists():
            stage = self._staging / release.sha256
            file = stage / _file_name(offer.url)
            if not self._fetch(offer, file):
                return
            self._verify(release, offer, file)
            self._place(offer, stage, target)
        self._remember_placed(release.sha256)
        if not target.exists():
            return
        text = f"version {release.version} of the agent is ready to install in {target}"
        self._tell("update_ready", text, latest_version=str(release.version), path=str(target), sha256=release.sha256)
        self._start_command(release, target)

    def _fetch(self, offer: Offer, file: Path) -> bool:
        """Go on where the last try ended; False when the time for now is over."""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stray in [*self._staging.iterdir(), *file.parent.iterdir()]:
            if stray not in (file, file.parent):
                _remove(stray)
        ends = clock.monotonic() + self._pace.update_slice
        return self._client.download(
            offer.url, file, MOST_BYTES, lambda: clock.monotonic() < ends and not self._stop.requested
        )

    def _verify(self, release: Release, offer: Offer, file: Path) -> None:
        try:
            check_bytes(release, offer, self._policy.keys, file.read_bytes())
        except Untrusted:
            file.unlink()
            raise

    def _place(self, offer: Offer, stage: Path, target: Path) -> None:
        """The file and its record appear together or not at all; of earlier updates nothing is left."""
        self._updates.mkdir(exist_ok=True)
        for earlier in self._updates.iterdir():
            if _OURS.fullmatch(earlier.name):
                _remove(earlier)
        proof = {"release": offer.record, "release_signature": offer.record_signature, "signature": offer.signature}
        durable.write(stage / RECORD, json.dumps(proof, indent=1).encode())
        durable.place_folder(stage, target)

    def _remember_placed(self, sha256: str) -> None:
        if self._store.memory.update_placed != sha256:
            self._store.memory.update_placed = sha256
            self._store.save()

    def _start_command(self, release: Release, target: Path) -> None:
        memory = self._store.memory
        if not self._policy.command or memory.update_commanded == release.sha256:
            return
        files = [path for path in target.glob("*") if path.name != RECORD]
        if not files:
            return
        # Journaled first: an installer that ends this agent half-way must not be started by each agent that follows.
        memory.update_commanded = release.sha256
        self._store.save()
        arguments = [*shlex.split(self._policy.command, posix=os.name != "nt"), str(files[0])]
        self._say("update_command", f"starting {' '.join(arguments)}", command=arguments)
        try:
            self._running = self._started(arguments)
        except OSError as trouble:
            self._say("problem", f"the update command cannot be started: {trouble}", problem=True)

    def _started(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        # Output of its own, for ours is read by programs; and not the key, which is none of its business.
        environ = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
        with (self._store.home / COMMAND_LOG).open("ab") as log:
            return subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
            )

    def _look_after_command(self) -> None:
        if self._running is None or (code := self._running.poll()) is None:
            return
        self._running = None
        text = f"the update command ended with {code}; what it said is in {self._store.home / COMMAND_LOG}"
        self._say("update_command_ended", text, problem=code != 0, exit_code=code)

    def _tell(self, event: str, text: str, *, problem: bool = False, **fields: object) -> None:
        """Once in this agent's life, not with every heartbeat."""
        if text not in self._told:
            self._told.add(text)
            self._say(event, text, problem=problem, detail=False, **fields)


def _file_name(url: str) -> str:
    """The artifact's own name, which nobody signed, as a plain one: what kind of file it is stands in its ending."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", unquote(urlsplit(url).path).rpartition("/")[2])[-100:].lstrip(".-")
    return name if name and name != RECORD else "update"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()

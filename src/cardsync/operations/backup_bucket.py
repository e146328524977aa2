"""Copies backups to a bucket and back: the files of a backup's folder under its name, the manifest
last, so that an incomplete copy has no manifest and is not a backup.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore

from cardsync.platform import errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import MANIFEST, PARTIAL, Backup, Manifest


class Bucket:
    """A bucket for copies of backups: `s3://bucket/folder`, with credentials from the
    environment.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = obstore.store.from_url(url)

    def push(self, backup: Backup) -> None:
        """Copy a backup to the bucket. Raises CommandError."""
        files = [path for path in sorted(backup.path.rglob("*")) if path.is_file()]
        ordered = [one for one in files if one.name != MANIFEST] + [backup.path / MANIFEST]
        with _as_sentence(self.url):
            for path in ordered:
                obstore.put(self.store, f"{backup.name}/{self._key(backup, path)}", path)

    def pull(self, name: str, folder: Path) -> Backup:
        """Copy a backup from the bucket into `folder`. Raises CommandError."""
        partial = folder / f"{PARTIAL}{name}"
        shutil.rmtree(partial, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.mkdir(mode=0o700)
        with _as_sentence(self.url):
            keys = [key for key in self._keys() if key.startswith(f"{name}/")]
            if f"{name}/{MANIFEST}" not in keys:
                raise errors.CommandError(f"there is no backup {name} in {self.url}")
            for key in keys:
                target = partial / key.removeprefix(f"{name}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                private = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
                with os.fdopen(private, "wb") as file:
                    for chunk in obstore.get(self.store, key):
                        file.write(chunk)
        whole = folder / name
        shutil.rmtree(whole, ignore_errors=True)
        partial.rename(whole)
        return backup_folder.read(whole)

    def names(self) -> list[str]:
        """Return the names of the complete backups in the bucket, newest first."""
        with _as_sentence(self.url):
            found = [
                key.removesuffix(f"/{MANIFEST}") for key in self._keys() if key.endswith(MANIFEST)
            ]
        return sorted((one for one in found if backup_folder.moment_of(one)), reverse=True)

    def manifests(self) -> dict[str, Manifest]:
        """Return the manifests of the complete backups in the bucket by their names. Raises
        CommandError.
        """
        names = self.names()
        with _as_sentence(self.url):
            texts = {
                name: bytes(obstore.get(self.store, f"{name}/{MANIFEST}").bytes()) for name in names
            }
        return {name: backup_folder.read_manifest(text, name) for name, text in texts.items()}

    def drop(self, names: Iterable[str]) -> None:
        """Delete backups, the manifest of each backup first."""
        with _as_sentence(self.url):
            keys = self._keys()
            for name in names:
                own = [key for key in keys if key.startswith(f"{name}/")]
                for key in sorted(own, key=lambda key: not key.endswith(MANIFEST)):
                    obstore.delete(self.store, key)

    def _keys(self) -> list[str]:
        return [item["path"] for batch in obstore.list(self.store) for item in batch]

    @staticmethod
    def _key(backup: Backup, path: Path) -> str:
        return path.relative_to(backup.path).as_posix()


@contextmanager
def _as_sentence(url: str) -> Iterator[None]:
    """Convert a bucket's error into one sentence."""
    try:
        yield
    except (OSError, obstore.exceptions.BaseError) as e:
        words = " ".join(str(e).split())[:300]
        raise errors.CommandError(f"{url} cannot be used: {words}") from e

"""Backups of files that nobody restores."""

from __future__ import annotations

import msgspec

from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import Backup, Manifest


def a_backup(folder, made_at, sellers=1, objects=("one",), parent=None, dump=b"dump"):
    path = folder / backup_folder.name_of(made_at)
    (path / "objects").mkdir(parents=True)
    (path / backup_folder.DUMP).write_bytes(dump)
    for name in objects:
        (path / "objects" / name).write_bytes(name.encode())
    lines = {name: backup_folder.digest(path / "objects" / name) for name in objects}
    (path / backup_folder.OBJECT_LIST).write_bytes(msgspec.json.encode(lines))
    manifest = Manifest(
        made_at=made_at, program="1", revision="0001", server=18, seals=[],
        tables={"seller": sellers}, database=backup_folder.digest(path / backup_folder.DUMP),
        objects=backup_folder.digest(path / backup_folder.OBJECT_LIST), object_bytes=3,
        object_count=len(objects), parent=parent,
    )  # fmt: skip
    (path / backup_folder.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return Backup(path, manifest)

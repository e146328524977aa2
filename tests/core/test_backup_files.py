"""The files of backups: which are kept with what they build on, which are damaged, which is the
newest with a shop; and what the programs of PostgreSQL are told of a database.
"""

import json
import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from backups_builder import a_backup
from cardsync.operations import base_backup, pg_tools, take_backup
from cardsync.operations.base_backup import needed
from cardsync.operations.installation_backups import _kept
from cardsync.platform import errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.storage import LocalStore

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def test_what_a_kept_backup_builds_on_is_kept():
    """Each week has a whole one, on which the six of the next days build, each on the one before."""
    days = [NOW - timedelta(days=day) for day in range(120)]
    names = [backup_folder.name_of(at) for at in days]
    parents = {
        name: None if day % 7 == 6 or day == len(names) - 1 else names[day + 1]
        for day, name in enumerate(names)
    }
    kept = _kept(parents)
    assert names[0] in kept
    assert all(parents[name] in kept for name in kept if parents[name])
    assert len(kept) < len(names)
    assert needed({names[0]}, parents) == set(names[1:7])


def test_the_newest_backup_is_the_newest_with_a_shop(tmp_path):
    first = a_backup(tmp_path, NOW - timedelta(days=1))
    a_backup(tmp_path, NOW, sellers=0)
    broken = a_backup(tmp_path, NOW + timedelta(days=1))
    (broken.path / backup_folder.MANIFEST).write_text("{")
    assert backup_folder.find(tmp_path, None).name == first.name
    assert [one.name for one in backup_folder.listed(tmp_path)][-1] == first.name
    [why] = backup_folder.unreadable(tmp_path)
    assert broken.name in why


def test_a_lost_object_is_told_apart_from_a_damaged_database(tmp_path):
    backup = a_backup(tmp_path, NOW, objects=("one", "two"))
    base_backup.check(backup)
    (backup.path / "objects" / "one").unlink()
    with pytest.raises(errors.CommandError, match="--without-damaged-objects"):
        base_backup.check(backup)
    base_backup.check(backup, objects_too=False)
    (backup.path / backup_folder.DUMP).write_bytes(b"dumb")
    with pytest.raises(errors.CommandError, match="was changed since it was written: use another"):
        base_backup.check(backup, objects_too=False)


def test_a_backup_does_not_change_how_long_an_object_is_kept(tmp_path):
    store = LocalStore(tmp_path / "objects", lambda: b"")
    old = time.time() - 3600
    with store.spool() as (path, file):
        file.write(b"rows")
        file.flush()
        os.utime(path, (old, old))
        store.publish(path, "accepted/u1/a.csv")
    kept = store.path("accepted/u1/a.csv")
    assert kept.stat().st_mtime > old + 3000
    os.utime(kept, (old, old))
    take_backup.link_or_copy(kept, tmp_path / "linked")
    assert store._sweep(tmp_path / "objects" / "accepted", old + 1) == 1
    assert (tmp_path / "linked").read_bytes() == b"rows"


def test_a_copy_on_another_disk_is_whole_or_not_there(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"rows")
    take_backup.link_or_copy(source, target)
    assert target.read_bytes() == b"rows"
    assert take_backup._is_same(source, target)
    target.write_bytes(b"rowz")
    assert not take_backup._is_same(source, target)
    assert {path.name for path in tmp_path.iterdir()} == {"source", "target"}


def test_a_program_gets_the_whole_address_and_the_password_apart(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" "$PGPASSWORD" "$PGSSLROOTCERT" > "$0.said"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PGSSLROOTCERT", "/etc/root.crt")
    url = "postgresql://owner:s3cret@db/shop?sslmode=verify-full&channel_binding=require"
    pg_tools.run(program, url, "--jobs=2")
    first, address, jobs, password, certificate = (
        (tmp_path / "program.said").read_text().splitlines()
    )
    assert (first, jobs, password) == ("--no-password", "--jobs=2", "s3cret")
    assert certificate == "/etc/root.crt"
    assert "s3cret" not in address
    assert {"sslmode=verify-full", "channel_binding=require"} <= set(
        address.removeprefix("--dbname=").split()
    )
    program.write_text("#!/bin/sh\necho no room >&2\nexit 3\n")
    with pytest.raises(errors.CommandError, match="program failed: no room"):
        pg_tools.run(program, None)


def test_a_manifest_says_what_it_lacks(tmp_path):
    backup = a_backup(tmp_path, NOW)
    path = backup.path / backup_folder.MANIFEST
    said = json.loads(path.read_text())
    del said["server"]
    path.write_text(json.dumps(said))
    with pytest.raises(errors.CommandError, match=r"cannot be read: .*server"):
        backup_folder.read(backup.path)

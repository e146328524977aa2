"""Backups have copies in a bucket, on a real S3 server."""

import json
import shutil
from datetime import UTC, datetime

import pytest
from tests.s3_server import make_bucket, s3_server
from tests.system.processes import CARDS, Server, a_folder

from backups_builder import a_backup
from builders import a_csv, a_row
from cardsync.operations.backup_bucket import Bucket
from cardsync.platform import errors
from cardsync.platform.backups import backup_folder

URL = "s3://cardsync-backups/of/this/shop"


@pytest.fixture(scope="module")
def s3():
    with a_folder() as folder, s3_server(folder) as env:
        yield env


@pytest.fixture(autouse=True)
def in_s3(s3, monkeypatch):
    """The test and the programs that it starts find the server."""
    for name, value in s3.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket():
    return Bucket(URL)


DUMP = b"dump" * 200_000


def test_a_backup_goes_to_the_bucket_and_comes_back(bucket, tmp_path):
    first, second = (
        a_backup(tmp_path / "here", datetime(2026, 11, day, tzinfo=UTC), dump=DUMP)
        for day in (1, 2)
    )
    for one in (first, second):
        bucket.push(one)
    assert bucket.names() == [second.name, first.name]
    there = tmp_path / "there"
    there.mkdir()
    pulled = bucket.pull(first.name, there)
    assert list(backup_folder.faults(pulled)) == []
    assert list(backup_folder.object_faults(pulled)) == []
    assert pulled.manifest == first.manifest
    assert bucket.manifests() == {one.name: one.manifest for one in (first, second)}
    assert (
        pulled.path.stat().st_mode & 0o77,
        (pulled.path / "manifest.json").stat().st_mode & 0o77,
    ) == (0, 0)
    bucket.drop([first.name])
    assert bucket.names() == [second.name]
    with pytest.raises(errors.CommandError, match="there is no backup"):
        bucket.pull(first.name, there)


def test_a_bucket_that_refuses_is_named_in_one_sentence(bucket, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(errors.CommandError, match=f"^{URL} cannot be used: .*403"):
        Bucket(URL).names()


@pytest.mark.night
def test_a_new_computer_takes_the_shop_from_the_bucket():
    settings = {"BACKUP_URL": "s3://cardsync-moves/shop"}
    make_bucket("s3://cardsync-moves")
    with a_folder() as folder, Server(folder, **settings) as server:
        seller = server.admin_seller()
        cards = a_csv(*(a_row(n, name=f"Card {n}", price="1.50") for n in range(1, 60)))
        assert seller.finished(seller.upload(cards, "2026-11-20T08:00:00Z"))["state"] == "done"
        for kind in ("dump", "base", "base"):
            server.env["CARDSYNC_BACKUP_KIND"] = kind
            made = server.run("backup", "now", "--json")
            assert made.code == 0, made.err
        name = json.loads(made.out)["name"]
        shutil.rmtree(server.data_dir / "backups")
        assert f"{name}  in the bucket" in server.run("backup", "list").out
        with a_folder() as elsewhere:
            other = Server(elsewhere, **settings)
            restored = other.run("restore")
            assert restored.code == 0, restored.err
            with other:
                there = type(seller)(other, seller.id, seller.api_key)
                assert len(there.sql(CARDS)) == 59

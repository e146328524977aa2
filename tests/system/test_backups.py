"""A shop comes back from its backup: made while it serves, checked, rehearsed and restored by the
commands that an operator has.
"""

import itertools
import json
import os
import random
import shutil
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import psutil
import psycopg
import pytest
from tests.system.processes import CARDS, Server, a_folder, kill, processes_of, until

from builders import a_csv, a_row
from cardsync.operations import requested_restore
from cardsync.operations.processes import embedded
from cardsync.platform.backups import backup_folder, requested_backup
from cardsync.platform.backups.backup_schedule import TOO_OLD
from cardsync.platform.database.urls import BACKUP_ROLE, libpq_url
from schedule import count

FIRST = a_csv(*(a_row(n, name=f"Card {n}", price="1.50") for n in range(1, 60)))
LATER = a_csv(*(a_row(n, name=f"Card {n}", price="9.00") for n in range(1, 41)))


@pytest.fixture(scope="module")
def shop():
    """A server, its seller with cards, and a backup that was made while it served."""
    with a_folder() as folder, Server(folder) as server:
        seller = server.admin_seller()
        assert seller.finished(seller.upload(FIRST, "2026-11-20T08:00:00Z"))["state"] == "done"
        made = server.run("backup", "now", "--json")
        assert made.code == 0, made.err
        yield server, seller, json.loads(made.out)


@pytest.fixture
def stopped(shop):
    server, seller, made = shop
    server.stop()
    yield server, seller, made
    server.start()


def databases(server):
    rows = server.sql("SELECT datname FROM pg_database WHERE NOT datistemplate")
    return {row["datname"] for row in rows} - {"postgres"}


def test_a_shop_is_restored_and_what_was_there_is_kept(shop):
    server, seller, made = shop
    before = seller.sql(CARDS)
    assert seller.finished(seller.upload(LATER, "2026-11-21T08:00:00Z"))["state"] == "done"
    after = seller.sql(CARDS)
    assert after != before
    refused = server.run("restore", "--yes")
    assert refused.code == 1
    assert "stop it first" in refused.err
    server.stop()
    restored = server.run("restore", "--yes")
    assert restored.code == 0, restored.err
    assert "Undone since then: 1 upload" in restored.err
    assert "kept as the database cardsync_before_" in restored.out
    server.start()
    assert seller.sql(CARDS) == before
    assert seller.get("/api/v1/status").status_code == 200
    [old] = databases(server) - {"cardsync"}
    with (
        embedded.running(server.data_dir) as running,
        psycopg.connect(running.admin_url(old)) as connection,
    ):
        assert connection.execute("SELECT count(*) FROM upload").fetchone() == (2,)
    assert seller.finished(seller.upload(LATER, "2026-11-21T08:00:00Z"))["state"] == "done"
    assert server.run("restore", "--drop-old").out.strip() == f"{old} is dropped"
    assert made["rows"] > 60


def test_a_rehearsal_leaves_nothing_and_is_recorded(shop):
    server, _, made = shop
    rehearsed = server.run("backup", "rehearse")
    assert rehearsed.code == 0, rehearsed.err
    assert f"{made['name']} can be restored: 1 shops, 59 cards" in rehearsed.out
    assert databases(server) == {"cardsync"}
    [report] = server.sql("SELECT name, failure FROM backup_report WHERE kind = 'rehearsal'")
    assert report == {"name": made["name"], "failure": None}


def test_serve_makes_the_backup_that_a_page_asks_for():
    """Only this one has the process that looks for what pages asked."""
    with a_folder() as folder, Server(folder, DAILY_BACKUPS="true") as server:
        server.admin_seller()
        assert requested_backup.ask(server.data_dir)
        assert not requested_backup.ask(server.data_dir)
        until(lambda: requested_backup.read(server.data_dir) == "offered", "the backup")
        [report] = server.sql("SELECT kind, failure FROM backup_report")
        assert report == {"kind": "backup", "failure": None}


def damaged(server, made, name, damage):
    path = server.data_dir / "backups" / name
    shutil.copytree(made["path"], path)
    damage(path)
    return path


def flip(path):
    with (path / backup_folder.DUMP).open("r+b") as dump:
        dump.seek(2000)
        byte = dump.read(1)
        dump.seek(2000)
        dump.write(bytes([byte[0] ^ 1]))


def edit(**changed):
    def damage(path):
        manifest = path / backup_folder.MANIFEST
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changed))

    return damage


DAMAGES = {
    "truncated": (lambda path: os.truncate(path / backup_folder.DUMP, 900), "900 bytes instead"),
    "flipped bit": (flip, "was changed since it was written"),
    "object gone": (
        lambda path: next(one for one in (path / "objects").rglob("*") if one.is_file()).unlink(),
        "cannot be read",
    ),
    "newer": (edit(revision="9999"), "it takes a newer cardsync"),
    "foreign": (edit(seals=["0" * 64]), "is of another installation"),
    "fewer rows": (edit(tables={"card": 58}), "card has 59 rows instead of 58"),
    "no backup": (lambda path: (path / "manifest.json").unlink(), "is not a backup of cardsync"),
    "no manifest": (edit(format="x"), "cannot be read"),
}


@pytest.mark.night
def test_a_damaged_newer_or_foreign_backup_changes_nothing(stopped):
    server, seller, made = stopped
    before = seller.sql(CARDS)
    for day, (damage, sentence) in enumerate(DAMAGES.values(), 1):
        path = damaged(server, made, f"2026-10-{day:02}T000000Z", damage)
        refused = server.run("restore", path.name, "--yes")
        assert (refused.code, sentence in refused.err) == (1, True), (sentence, refused.err)
        if damage is DAMAGES["no manifest"][0]:
            listed = server.run("backup", "list").out
            assert made["name"] in listed
            assert f"{path.name}/manifest.json cannot be read" in listed
        shutil.rmtree(path)
    assert seller.sql(CARDS) == before
    assert databases(server) == {"cardsync"}


@pytest.mark.night
def test_a_fresh_computer_takes_the_shop_from_its_backup(shop):
    server, seller, made = shop
    with a_folder() as folder:
        other = Server(folder, BACKUP_DIR=str(server.data_dir / "backups"))
        subject = other.run("restore", made["name"])
        assert subject.code == 0, subject.err
        with other:
            there = type(seller)(other, seller.id, seller.api_key)
            assert there.get("/api/v1/status").status_code == 200
            assert len(there.sql(CARDS)) == 59
            key = "secret.key"
            assert (other.data_dir / key).read_bytes() == (server.data_dir / key).read_bytes()


@pytest.mark.night
def test_the_set_up_page_restores_a_shop(shop):
    """What it alone finds: a page that names a backup, and a service that lets go of its database
    and is there again with another one.
    """
    server, seller, made = shop
    with (
        a_folder() as folder,
        httpx.Client() as http,
        Server(folder, BACKUP_DIR=str(server.data_dir / "backups")) as fresh,
    ):
        http.base_url = fresh.url
        token = fresh.run("set-up-link").out.strip().partition("?token=")[2]
        page = http.get("/set-up", params={"token": token})
        assert "59 cards" in page.text
        assert http.post("/set-up/restore", data={"token": "x"}).status_code == 403
        asked = {"token": token, "backup": "2026-01-01T000000Z"}
        answers = [http.post("/set-up/restore", data=asked) for _ in range(2)]
        assert [one.status_code for one in answers] == [303, 409]
        at = answers[0].headers["location"]

        def reloaded():
            """The page as it reloads itself: a stranger who asks faster is refused."""
            time.sleep(requested_restore.RELOAD_SECONDS)
            with suppress(httpx.TransportError):
                return http.get(at)
            return None

        def shows(text):
            page = reloaded()
            return page is not None and text in page.text

        until(lambda: shows("is not a backup of cardsync"), "the refusal", 90)
        asked["backup"] = made["name"]
        assert http.post("/set-up/restore", data=asked).headers["location"] == at
        assert shows("Restoring your shop")

        def is_there():
            page = reloaded()
            return page is not None and page.headers.get("location") == "/sign-in"

        until(is_there, lambda: f"the shop; it says:\n{fresh.said()}", 120)
        until(fresh.ready, "the service", 60)
        there = type(seller)(fresh, seller.id, seller.api_key)
        assert there.get("/api/v1/status").status_code == 200
        assert len(there.sql(CARDS)) == 59
        assert http.post("/set-up/restore", data=asked).status_code == 404
        assert not (fresh.data_dir / "restore.json").exists()


@pytest.mark.night
def test_damaged_objects_hold_up_no_restore(stopped):
    server, seller, made = stopped
    before = seller.sql(CARDS)
    path = damaged(server, made, "2026-10-20T000000Z", DAMAGES["object gone"][0])
    refused = server.run("restore", path.name, "--yes")
    assert (refused.code, "--without-damaged-objects" in refused.err) == (1, True), refused.err
    restored = server.run("restore", path.name, "--yes", "--without-damaged-objects")
    assert restored.code == 0, restored.err
    assert len(seller.sql(CARDS)) == len(before)
    assert server.run("restore", "--drop-old").code == 0
    shutil.rmtree(path)


@pytest.mark.night
def test_the_day_has_one_backup_and_old_ones_go(shop):
    server, _, made = shop
    folder = server.data_dir / "backups"
    assert server.run("backup", "daily").out == ""
    newest = datetime.now(UTC) - TOO_OLD
    names = [backup_folder.name_of(newest - timedelta(days=day)) for day in range(12)]
    for name in names:
        path = damaged(server, made, name, lambda path: None)
        edit(made_at=backup_folder.moment_of(name).isoformat())(path)
    shutil.move(made["path"], folder.parent / "aside")
    done = server.run("backup", "daily")
    assert done.code == 0, done.err
    listed = json.loads(server.run("backup", "list", "--json").out)["backups"]
    assert [one["name"] for one in listed[1:7]] == names[:6]
    assert 7 <= len(listed) < 12
    for one in listed:
        shutil.rmtree(one["path"])
    shutil.move(folder.parent / "aside", made["path"])


def test_the_backup_role_reads_all_shops_and_writes_nothing(shop):
    server, _, _ = shop
    with (
        embedded.running(server.data_dir) as running,
        psycopg.connect(libpq_url(running.admin_url(), role=BACKUP_ROLE)) as connection,
    ):
        rights = "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = %s"
        assert connection.execute(rights, [BACKUP_ROLE]).fetchone() == (False, True, False)
        assert connection.execute("SELECT count(*) FROM card").fetchone() == (59,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM card")


@pytest.mark.night
def test_a_backup_or_restore_killed_at_any_moment_loses_nothing(stopped):
    """What alone finds: a half-made backup that counts, a database between two names."""
    server, seller, made = stopped
    before, found = seller.sql(CARDS), []
    for command in (["backup", "now"], ["restore", made["name"], "--yes"]) * count("KILLS", 6, 1):
        process = psutil.Process(server.launch(*command).pid)
        time.sleep(random.uniform(0.5, 6))
        with suppress(psutil.Error):
            kill(*process.children(recursive=True), process)
        for left in processes_of(server.data_dir):
            if "pg_restore" in left.name() or "pg_dump" in left.name():
                left.send_signal(signal.SIGKILL)
        found.append(seller.sql(CARDS))
    until(lambda: server.run("restore", made["name"], "--yes").code == 0, "a restore", 240)
    restored = seller.sql(CARDS)
    # A restore that came to its end before the kill is whole; any other has changed nothing.
    assert all(cards in (before, restored) for cards in found)
    assert [one["price"] for one in restored] == [Decimal("1.5")] * 59
    for one in json.loads(server.run("backup", "list", "--json").out)["backups"]:
        assert server.run("backup", "verify", one["name"]).code == 0
    if left := list((server.data_dir / "backups").glob(".partial-*")):
        assert server.run("backup", "now").code == 0
        reports = server.sql("SELECT name, failure FROM backup_report WHERE failure IS NOT NULL")
        told = {one["name"]: one["failure"] for one in reports}
        assert told[left[0].name.removeprefix(".partial-")] == "it was stopped before its end"
    assert {name for name in databases(server) if "restoring" in name} == set()


@pytest.mark.night
def test_base_backups_build_on_each_other_and_are_restored(shop):
    """What it alone finds: files of PostgreSQL that were put together and run."""
    server, seller, _ = shop
    before = seller.sql(CARDS)
    with_base = dict(server.env) | {"CARDSYNC_BACKUP_KIND": "base"}
    server.env, earlier = with_base, server.env
    try:
        made = []
        for number in range(3):
            done = server.run("backup", "now", "--json")
            assert done.code == 0, done.err
            made.append(json.loads(done.out))
            named = f"Moved {number}"
            server.sql(f"UPDATE account SET store_name = '{named}' WHERE seller_id = {seller.id}")
            time.sleep(1)
        listed = server.run("backup", "list").out
        for later, one in itertools.pairwise(made):
            assert f"built on {later['name']}" in listed
            assert one["bytes"] < later["bytes"] or later is not made[0]
        assert server.run("backup", "verify", made[2]["name"]).code == 0
        rehearsed = server.run("backup", "rehearse", made[2]["name"])
        assert rehearsed.code == 0, rehearsed.err
        assert "1 shops, 59 cards" in rehearsed.out
        server.stop()
        restored = server.run("restore", made[2]["name"], "--yes")
        assert restored.code == 0, restored.err
        server.start()
        assert seller.sql(CARDS) == before
        [account] = server.sql("SELECT store_name FROM account")
        assert account["store_name"] == "Moved 1"
        assert not (server.data_dir / "copied-database").exists()
        assert not (server.data_dir / "restoring").exists()
        os.truncate(server.data_dir / "backups" / made[0]["name"] / "base" / "base.tar.gz", 900)
        refused = server.run("backup", "verify", made[2]["name"])
        assert (refused.code, "900 bytes instead" in refused.err) == (1, True), refused.err
    finally:
        server.env = earlier
        server.run("restore", "--drop-old")
        for one in made:
            shutil.rmtree(one["path"], ignore_errors=True)

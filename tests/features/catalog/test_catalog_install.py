"""`cardsync catalog install` and `cardsync catalog list`, against a server of this machine that stands
for the sources; two callers at once, and a process that is killed in the middle.
"""

import asyncio
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from builders import a_csv, a_row
from cardsync.catalog import install_catalog, install_state, source_files
from cardsync.catalog.install_catalog import install
from cardsync.catalog.install_state import source_for
from cardsync.catalog.renew_catalogs import renew_due
from cardsync.catalog.sources.declared import SOURCES
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.operations.doctor import examine
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from catalog_site import (
    SCRYFALL,
    SCRYFALL_FILE,
    TCGCSV,
    a_card,
    everywhere,
    forget_the_day,
    some_cards,
)
from world import printed

CATEGORY = 86
GROUP = f"{TCGCSV}/{CATEGORY}/7/ProductsAndPrices.csv"


def later(query, hours=24):
    """Let so many hours pass for the files that are here, and for what is installed."""
    query(f"UPDATE catalog_install SET checked_at = checked_at - interval '{hours} hours'")


async def no_mail(url):
    """Sign in nowhere."""


def test_a_catalog_is_installed_and_listed_and_asked_for_once_a_day(run, site, here, a_set, names):
    assert (
        "no catalog is installed: `cardsync catalog install magic`" in printed(run("list")) or names
    )
    site.has_magic(some_cards(a_set, 5))
    assert "5 products in Scryfall, Magic: 5 new" in printed(run("install", "magic"))
    assert len(names()) == 5
    assert site.paths == [SCRYFALL, SCRYFALL_FILE]
    assert all(headers["user-agent"].startswith("cardsync/") for _, headers in site.asked)
    [line] = [line for line in printed(run("list")).splitlines() if line.startswith("magic ")]
    assert f"Scryfall, 5 printings, of {clock.now():%Y-%m-%d}, up to date, license:" in line
    # Within the day the file is not asked for again, and on the next one only if it has changed.
    assert "Magic is as Scryfall has it: 5 printings" in printed(run("install", "magic"))
    assert SCRYFALL_FILE not in site.paths[2:]
    forget_the_day(here)
    printed(run("install", "magic"))
    path, headers = site.asked[-1]
    assert path == SCRYFALL_FILE
    assert "if-none-match" in headers
    site.has_magic(some_cards(a_set, 6))
    forget_the_day(here)
    assert "1 new, 0 changed" in printed(run("install", "magic"))
    assert json.loads(printed(run("list", "--json")))["catalogs"][0]["rows"] == 6


def test_games_of_many_files_are_one_command_and_one_that_fails_stops_no_other(
    run, site, a_set, names
):
    products = ["1,Gundam One,86,7,GD01-001,C,Normal", "2,Gundam Two,86,7,GD01-002,C,Normal"]
    site.has_groups(CATEGORY, (7, a_set, products))
    result = run("install", "magic", "gundam")
    assert result.exit_code == 1
    assert "Scryfall did not give the file" in result.output
    assert names() == ["Gundam One", "Gundam Two"]
    refused = run("install", "gundam", "chess")
    assert "no source has 'chess'; catalogs can be installed of" in refused.output
    assert "'mtgjson' has no" in run("install", "gundam", "--source", "mtgjson").output.replace(
        "mtgjson has", "'mtgjson' has"
    )


def test_a_source_that_is_away_or_has_changed_its_form_leaves_the_catalog_and_says_so(
    run, site, here, a_set, names, query
):
    site.has_magic(some_cards(a_set, 10))
    printed(run("install", "magic"))
    kept = names()
    broken = {
        "is away": lambda: site.status.update({SCRYFALL_FILE: 503}),
        "its index has no download_uri": lambda: site.files.update({SCRYFALL: b"{}"}),
        "is no whole JSON file": lambda: site.files.update({SCRYFALL_FILE: b'[{"name": "x'}),
        "holds no record that can be used": lambda: site.has_magic([{"title": "x"}] * 10),
        "2 of 12 records cannot be read": lambda: site.has_magic(
            [*some_cards(a_set, 10), {"title": "x"}, {"title": "y"}]
        ),
        "has 7 printings now and had 10": lambda: site.has_magic(some_cards(a_set, 7)),
        "did not give the file": lambda: site.files.pop(SCRYFALL_FILE),
    }
    for words, breaks in broken.items():
        site.has_magic(some_cards(a_set, 10))
        site.status.clear()
        breaks()
        forget_the_day(here)
        result = run("install", "magic")
        assert result.exit_code == 1
        assert words in result.output
        assert names() == kept
        listed = printed(run("list"))
        assert words in listed
        assert "the newest try failed" in listed
        [told] = [one for one in examine(here, no_mail) if "Scryfall" in one.sentence]
        assert (told.state, told.part) == ("note", "catalogs")
        assert "stays" in told.sentence
    site.has_magic(some_cards(a_set, 7))
    assert "no longer named" in printed(run("install", "magic", "--fewer"))
    assert len(names()) == 7
    assert "failed" not in printed(run("list"))
    [told] = [one for one in examine(here, no_mail) if one.part == "catalogs"]
    assert f"magic of {clock.now():%Y-%m-%d}" in told.sentence
    assert told.state == "ok"
    query("UPDATE catalog_install SET checked_at = now() - interval '15 days'")
    [told] = [one for one in examine(here, no_mail) if "is 15 days old" in one.sentence]
    assert told.state == "bad"


def test_a_download_that_ends_early_goes_on_where_it_was(run, site, a_set, names):
    site.has_magic(some_cards(a_set, 600))
    size = len(site.files[SCRYFALL_FILE])
    site.cut[SCRYFALL_FILE] = 100_000
    printed(run("install", "magic"))
    [first, second] = [headers for path, headers in site.asked if path == SCRYFALL_FILE]
    assert "range" not in first
    assert 0 < int(second["range"].removeprefix("bytes=").removesuffix("-")) <= 100_000 < size
    assert len(names()) == 600


@pytest.mark.parametrize("marks", [True, False])
def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(
    run, site, here, a_set, names, marks
):
    site.marks = marks
    site.has_magic(some_cards(a_set, 200))
    # Both tries end early.
    site.cut[SCRYFALL_FILE] = 20_000
    site.status[SCRYFALL] = 503
    assert run("install", "magic").exit_code == 1
    site.status.clear()
    part = here.data_dir / "catalogs/scryfall-magic/parts/default-cards.json"
    part.write_bytes(b"x" * 100)
    printed(run("install", "magic"))
    assert len(names()) == 200


def test_a_large_file_may_come_packed(run, site, a_set, names):
    site.packs = True
    site.has_magic(some_cards(a_set, 20))
    printed(run("install", "magic"))
    assert len(names()) == 20


@pytest.mark.parametrize("name", sorted(everywhere("")))
def test_every_source_that_is_declared_can_be_installed(run, site, a_set, names, name):
    """Whatever the number of its files, whether its server packs them or not, and again."""
    declared = {one.name for one in SOURCES if one.downloads}
    assert declared == {*everywhere(a_set), "scryfall", "tcgcsv"}
    game, files = everywhere(a_set)[name]
    for path, content in files.items():
        body = json.dumps(content).encode()
        site.files[path] = lzma.compress(body) if path.endswith(".xz") else body
    site.packs = True
    assert "2 new, 0 changed" in printed(run("install", game, "--source", name))
    assert len(names()) == 2
    assert set(site.paths) == set(files)
    # It is renewed from there, too.
    assert "is as" in printed(run("install", game))
    assert len(site.paths) == len(files)


def test_a_folder_that_cannot_be_written_is_said(run, site, here, a_set):
    site.has_magic(some_cards(a_set, 5))
    (here.data_dir / "catalogs").write_text("in the way")
    result = run("install", "magic")
    assert result.exit_code == 1
    assert "cannot be written: Not a directory" in result.output


def test_a_private_address_is_refused_where_no_setting_names_it(
    run, site, here, monkeypatch, a_set, names
):
    site.has_magic(some_cards(a_set, 5))
    monkeypatch.delenv("CARDSYNC_CATALOG_MIRROR")
    monkeypatch.setattr(
        source_files, "opened", _with_resolver(source_files.opened, lambda host, port: ["10.0.0.1"])
    )
    result = run("install", "magic")
    assert result.exit_code == 1
    assert "its host is not in the public internet" in result.output
    assert site.asked == []
    assert names() == []


def test_a_redirect_is_followed_and_checked_like_the_address(run, site, here, a_set, names):
    site.has_magic(some_cards(a_set, 5), path="/data.scryfall.io/moved.json")
    index = {"object": "bulk_data", "download_uri": f"https:/{SCRYFALL_FILE}"}
    site.files[SCRYFALL] = json.dumps(index).encode()
    site.moved[SCRYFALL_FILE] = "http://10.0.0.1/data.scryfall.io/moved.json"
    refused = run("install", "magic")
    assert refused.exit_code == 1
    assert "it must begin with https://" in refused.output
    site.moved[SCRYFALL_FILE] = SCRYFALL_FILE
    again = run("install", "magic")
    assert again.exit_code == 1
    assert "it was redirected more than 3 times" in again.output
    assert names() == []
    site.moved[SCRYFALL_FILE] = "/data.scryfall.io/moved.json"
    assert run("install", "Magic").exit_code == 0
    assert len(names()) == 5


def _with_resolver(opened, found):
    from ipaddress import ip_address

    async def look_up(host, port):
        return [ip_address(one) for one in found(host, port)]

    return lambda *args, **more: opened(*args, **more, look_up=look_up)


def test_a_game_without_a_catalog_is_named_with_the_command(run, tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes(a_csv(a_row(1, line="Star Wars: Unlimited"), a_row(2, line="Chess")))
    told = run("match", path).stderr
    assert "rows have no catalog to match them with" in told
    assert "star_wars_unlimited" in told
    assert "chess" in told
    # A word that has no source would be refused with all others.
    [command] = re.findall("`cardsync catalog install ([a-z_ ]+)`", told)
    assert command == "star_wars_unlimited"


def test_names_of_a_list_lead_nowhere_else(run, site, here, a_set):
    site.has_groups(CATEGORY, ("../../x", a_set, []))
    result = run("install", "gundam")
    assert "entry 1 of its list does not name a file" in result.output
    assert not [*here.data_dir.glob("**/*ProductsAndPrices*")]


def test_an_installation_that_asks_no_host_installs_nothing(run, site, a_set, names, monkeypatch):
    site.has_magic(some_cards(a_set, 100))
    monkeypatch.setenv("CARDSYNC_OUTWARD_REQUESTS", "false")
    result = run("install", "magic")
    assert result.exit_code == 1
    assert "asks no other host (OUTWARD_REQUESTS)" in result.output
    assert names() == []
    monkeypatch.delenv("CARDSYNC_OUTWARD_REQUESTS")
    assert run("install", "magic").exit_code == 0


async def test_of_two_callers_one_installs(service, here, site, a_set, names):
    site.has_magic(some_cards(a_set, 100))
    site.slow = 0.01
    other = here.model_copy(update={"data_dir": here.data_dir / "another machine"})
    source = source_for("magic")
    ended = await asyncio.gather(
        *(
            install(service.database, machine, source, "magic", lambda _: None)
            for machine in (here, other)
        ),
        return_exceptions=True,
    )
    [won] = [one for one in ended if isinstance(one, str)]
    [lost] = [one for one in ended if isinstance(one, CatalogError)]
    assert "100 new" in won
    assert "by another process" in str(lost)
    assert site.paths.count(SCRYFALL_FILE) == 1
    assert len(names()) == 100


async def test_who_lost_the_hold_writes_nothing(
    service, here, site, a_set, names, query, monkeypatch
):
    """A machine that slept finds that another one has installed it meanwhile."""
    monkeypatch.setattr(install_catalog, "_LOOK_SECONDS", 0.1)
    site.has_magic(some_cards(a_set, 100))
    site.slow = 0.05
    work = install(service.database, here, source_for("magic"), "magic", lambda _: None)
    task = asyncio.create_task(work)
    while SCRYFALL_FILE not in site.paths:
        await asyncio.sleep(0.01)
    query("UPDATE catalog_install SET holder = 'another', held_until = now() + interval '1 hour'")
    with pytest.raises(CatalogError, match="another process installs"):
        await task
    assert names() == []
    assert query("SELECT holder FROM catalog_install") == [("another",)]


def test_a_process_that_is_killed_is_followed_by_one_that_goes_on(
    run, site, query, a_set, names, here
):
    """It alone kills a real process while it downloads."""
    site.has_magic(some_cards(a_set, 1000))
    site.slow = 0.01
    command = [sys.executable, "-m", "cardsync", "catalog", "install", "magic"]
    child = subprocess.Popen(command, env=os.environ.copy(), stderr=subprocess.PIPE)
    part = here.data_dir / "catalogs/scryfall-magic/parts/default-cards.json"
    until = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 20_000):
        assert time.monotonic() < until
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stderr.close()
    assert "being installed" in printed(run("list"))
    assert "by another process" in run("install", "magic").output
    # A minute later the dead one's hold is over.
    query("UPDATE catalog_install SET held_until = now()")
    site.slow = 0
    have = part.stat().st_size
    assert "1,000 new" in printed(run("install", "magic"))
    assert site.asked[-1][1]["range"] == f"bytes={have}-"
    assert len(names()) == 1000


# The command of people, but for its slices: thousands of cards would be one.
IN_SLICES = """
from cardsync.catalog import load_catalog
from cardsync.cli import program
assert load_catalog.CHUNK > 50
load_catalog.CHUNK = 50
program()
"""


def test_a_process_that_is_killed_while_it_writes_leaves_every_product_and_the_next_one_ends_it(
    run, site, here, query, owner_url, a_set, names
):
    """It alone kills a real process in the middle of a load, some slices of which are stored."""
    old = some_cards(a_set, 100)
    site.has_magic(old)
    printed(run("install", "magic"))
    rows = "SELECT id, product_name, vanished_at FROM product WHERE set_name = %s ORDER BY id"
    before = query(rows, a_set)
    assert len(before) == 100
    newer = [*old[:90], *(a_card(a_set, f"Newer {at}", at) for at in range(101, 501))]
    site.has_magic(newer)
    forget_the_day(here)
    command = [sys.executable, "-c", IN_SLICES, "catalog", "install", "magic"]
    child = subprocess.Popen(command, env=os.environ.copy(), stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as ours:
        # Each slice waits for this lock, and so do we: no two of them pass us.
        lock = "SELECT pg_advisory_{}(hashtext('cardsync catalog'))"
        while True:
            ours.execute(lock.format("lock"))
            if len(query(rows, a_set)) > 200:
                break
            assert time.monotonic() < until
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.005)
            ours.execute(lock.format("unlock"))
        child.send_signal(signal.SIGKILL)
        child.wait()
    child.stderr.close()
    half = query(rows, a_set)
    assert half[:100] == before
    assert 200 < len(half) < 500
    assert "being installed" in printed(run("list"))
    query("UPDATE catalog_install SET held_until = now()")
    assert f"{500 - len(half)} new" in printed(run("install", "magic"))
    after = query(rows, a_set)
    assert [one[:2] for one in after[:100]] == [one[:2] for one in before]
    lost = {name for _, name, vanished_at in after if vanished_at}
    assert lost == {card["name"] for card in old[90:]}
    assert sorted(names()) == sorted(card["name"] for card in newer)
    assert "Magic is as Scryfall has it: 490 printings" in printed(run("install", "magic"))


async def test_a_worker_installs_what_was_asked_for_and_renews_it_weekly(
    service, here, site, a_set, names, query
):
    from dataclasses import replace

    work = replace(service.work, settings=here)
    site.has_magic(some_cards(a_set, 10))
    async with service.database.shared() as session:
        assert await install_state.ask(session, source_for("magic"), "magic", clock.now())
        assert not await install_state.ask(session, source_for("magic"), "magic", clock.now())
    assert await renew_due(work) == 1
    assert len(names()) == 10
    assert await renew_due(work) == 0
    later(query, 24 * 6)
    assert await renew_due(work) == 0
    later(query, 25)
    never = replace(service.work, settings=here.model_copy(update={"catalog_renewal_days": 0}))
    assert await renew_due(never) == 0
    site.has_magic([*some_cards(a_set, 10), a_card(a_set, "A new one", 11)])
    forget_the_day(here)
    assert await renew_due(work) == 1
    assert "A new one" in names()
    # A source that is away is asked again later, and later each time.
    later(query, 24 * 8)
    site.status[SCRYFALL] = 503
    forget_the_day(here)
    assert await renew_due(work) == 1
    assert await renew_due(work) == 0
    query("UPDATE catalog_install SET next_at = now()")
    assert await renew_due(work) == 1
    [(failures, seconds)] = query(
        "SELECT failures, extract(epoch FROM next_at - failed_at) FROM catalog_install"
    )
    assert (failures, float(seconds)) == (2, 3600)
    site.status.clear()
    query("UPDATE catalog_install SET next_at = now()")
    assert await renew_due(work) == 1
    assert query("SELECT failure, failures FROM catalog_install") == [(None, 0)]

"""`cardsync catalog back`: the version that was in use before is loaded again, renewals do not bring
the refused one back, and no process that dies or comes second leaves half of one.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psycopg
import pytest

from cardsync.catalog import install_state
from cardsync.catalog.go_back import go_back
from cardsync.catalog.install_catalog import install
from cardsync.catalog.install_state import source_for
from cardsync.catalog.kept_versions import FOLDER
from cardsync.catalog.renew_catalogs import renew_due
from cardsync.catalog.sources.source_record import CatalogError
from cardsync.operations.doctor import examine
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from catalog_site import a_card, forget_the_day, some_cards
from world import printed

MAGIC = source_for("magic")


async def no_mail(url):
    """Sign in nowhere."""


@pytest.fixture
def old(a_set):
    return some_cards(a_set, 10)


@pytest.fixture
def newer(a_set, old):
    """Two cards are left out, and there are others, one of them in a set of its own."""
    return [*old[:8], a_card(a_set, "Wrong", 11), a_card(f"{a_set} X", "Wrong, too", 12)]


@pytest.fixture
def bring(run, site, here):
    """`bring(cards)` installs them."""

    def bring(cards):
        site.has_magic(cards)
        forget_the_day(here)
        return printed(run("install", "magic"))

    return bring


@pytest.fixture
def due(query):
    """Let the renewals that come be due by now."""
    sql = "UPDATE catalog_install SET next_at = now(), checked_at = now() - interval '8 days'"
    return lambda: query(sql)


@pytest.fixture
def objects(here):
    return lambda: sorted((here.data_dir / "objects" / FOLDER).rglob("*.parquet"))


def named(cards):
    return sorted(card["name"] for card in cards)


def test_the_version_before_is_loaded_again_and_said(run, site, here, a_set, bring, names, query,
    old, newer, objects):  # fmt: skip
    rows = "SELECT id, product_name, set_name, rarity FROM product WHERE set_name = %s ORDER BY id"
    bring(old)
    refused = run("back", "magic")
    assert refused.exit_code == 1
    assert "no earlier version of magic is kept" in refused.output
    before = query(rows, a_set)
    newer[0] = newer[0] | {"rarity": "mythic"}
    bring(newer)
    assert query(rows, a_set) != before
    assert len(objects()) == 2
    told = printed(run("back", "Magic"))
    assert f"Magic is as it was loaded on {clock.now():%Y-%m-%d}: 10 products" in told
    assert "no longer named, kept and marked" in told
    assert sorted(names()) == named(old)
    assert query(rows, a_set)[:10] == before
    gone = "SELECT vanished_at IS NOT NULL FROM product WHERE set_name = %s"
    assert query(gone, f"{a_set} X") == [(True,)]
    assert len(objects()) == 1
    listed = printed(run("list"))
    assert "Scryfall, 10 printings" in listed
    assert "gone back" in listed
    assert "went back from the version of" in listed
    [line] = [one for one in examine(here, no_mail) if "went back to its last version" in one[2]]
    assert line.state == "note"
    # There is one way back, not several.
    assert "no earlier version" in run("back", "magic").output


async def test_a_renewal_takes_a_newer_version_and_never_the_refused_one(
    service, run, site, here, a_set, bring, names, query, old, newer, due, objects
):
    work = replace(service.work, settings=here)
    await asyncio.to_thread(bring, old)
    await asyncio.to_thread(bring, newer)
    await asyncio.to_thread(lambda: printed(run("back", "magic")))
    # Nothing looks for another one at once.
    query("UPDATE catalog_install SET checked_at = now() - interval '8 days'")
    assert await renew_due(work) == 0
    # Its source has other prices, or another order, and the same cards.
    priced = [card | {"prices": {"usd": "9.99"}} for card in newer]
    for cards in (newer, priced, [*reversed(priced)]):
        site.has_magic(cards)
        forget_the_day(here)
        due()
        assert await renew_due(work) == 1
        assert sorted(names()) == named(old)
        [(failure, held)] = query("SELECT failure, refused IS NOT NULL FROM catalog_install")
        assert (failure, held) == (None, True)
        assert query("SELECT checked_at > now() - interval '1 hour' FROM catalog_install")[0][0]
    site.has_magic([*newer, a_card(a_set, "Newest", 13)])
    forget_the_day(here)
    due()
    assert await renew_due(work) == 1
    assert "Newest" in names()
    assert "gone back" not in await asyncio.to_thread(lambda: printed(run("list")))
    assert len(objects()) == 2
    # The way back leads to what was in use before.
    await asyncio.to_thread(lambda: printed(run("back", "magic")))
    assert sorted(names()) == named(old)


def test_a_person_takes_the_refused_version_by_asking_for_it(
    run, bring, names, old, newer, objects
):
    bring(old)
    bring(newer)
    printed(run("back", "magic"))
    assert "10 products in Scryfall" in printed(run("install", "magic"))
    assert "Wrong" in names()
    assert "gone back" not in printed(run("list"))
    assert len(objects()) == 2


def test_files_that_hold_the_same_cards_are_no_new_version(run, here, bring, names, old, newer):
    bring(old)
    bring(newer)
    for price in "123":
        bring([card | {"prices": {"usd": price}} for card in newer])
    printed(run("back", "magic"))
    assert sorted(names()) == named(old)


def test_a_version_that_is_lost_is_said_and_offered_no_more(
    run, bring, names, old, newer, objects, query
):
    bring(old)
    [first] = objects()
    bring(newer)
    first.unlink()
    refused = run("back", "magic")
    assert refused.exit_code == 1
    assert "going back to the version of" in refused.output
    assert "it is no longer kept" in refused.output
    assert "Wrong" in names()
    assert "no earlier version" in run("back", "magic").output
    assert query("SELECT asked_at, back, holder FROM catalog_install") == [(None, False, None)]


def test_what_dead_processes_left_in_the_store_is_deleted_by_the_next_load(
    run, here, bring, old, newer, objects
):
    bring(old)
    (objects()[0].parent / "left.parquet").write_bytes(b"half")
    bring(newer)
    assert len(objects()) == 2
    assert not [one for one in objects() if one.name == "left.parquet"]


def test_a_store_that_is_away_costs_the_way_back_and_not_the_catalog(
    run, here, bring, names, old, newer
):
    bring(old)
    store, elsewhere = here.data_dir / "objects", here.data_dir / "elsewhere"
    store.rename(elsewhere)
    store.write_text("in the way")
    bring(newer)
    assert "Wrong" in names()
    store.unlink()
    elsewhere.rename(store)
    # The newer one was not kept, and is refused all the same.
    printed(run("back", "magic"))
    assert sorted(names()) == named(old)
    assert "gone back" in printed(run("list"))


async def test_of_two_that_go_back_one_does_it(service, here, run, bring, names, old, newer, query):
    await asyncio.to_thread(bring, old)
    await asyncio.to_thread(bring, newer)
    async with service.database.shared() as session:
        assert await install_state.ask_back(session, MAGIC, "magic", clock.now())
        assert not await install_state.ask_back(session, MAGIC, "magic", clock.now())
    ended = await asyncio.gather(
        *(go_back(service.database, here, MAGIC, "magic", lambda _: None) for _ in range(2)),
        install(service.database, here, MAGIC, "magic", lambda _: None, renewal=True),
        return_exceptions=True,
    )
    assert all(isinstance(one, (str, CatalogError)) for one in ended)
    # Where the renewal had the hold first, it left the work to the next turn.
    if "is to go back to its last version" in str(ended[2]):
        ended.append(await go_back(service.database, here, MAGIC, "magic", lambda _: None))
    assert sum("is as it was loaded" in one for one in ended if isinstance(one, str)) == 1
    assert sorted(names()) == named(old)
    assert query("SELECT failure, asked_at, back FROM catalog_install") == [(None, None, False)]
    # Who comes later finds it done.
    told = await go_back(service.database, here, MAGIC, "magic", lambda _: None)
    assert "or has gone back" in told


async def test_who_asks_for_the_newest_meanwhile_gets_it(
    service, here, bring, names, old, newer, query
):
    work = replace(service.work, settings=here)
    await asyncio.to_thread(bring, old)
    await asyncio.to_thread(bring, newer)
    async with service.database.shared() as session:
        assert await install_state.ask_back(session, MAGIC, "magic", clock.now())
        assert await install_state.ask(session, MAGIC, "magic", clock.now())
    assert await renew_due(work) == 1
    assert "Wrong" in names()
    assert query("SELECT asked_at, back FROM catalog_install") == [(None, False)]


# The command of people, but for its slices: thousands of cards would be one.
IN_SLICES = """
from cardsync.catalog import load_catalog
from cardsync.cli import program
assert load_catalog.CHUNK > 50
load_catalog.CHUNK = 50
program()
"""


async def test_a_process_that_is_killed_while_it_goes_back_is_followed_by_a_worker_that_ends_it(
    service, run, here, query, owner_url, a_set, bring, names
):
    """It alone kills a real process that goes back, some slices of which are stored."""
    old = some_cards(a_set, 400)
    await asyncio.to_thread(bring, old)
    await asyncio.to_thread(bring, [card | {"rarity": "mythic"} for card in old])
    rows = "SELECT id, rarity FROM product WHERE set_name = %s ORDER BY id"
    count = "SELECT count(*) FROM product WHERE set_name = %s AND rarity = 'common'"
    command = [sys.executable, "-c", IN_SLICES, "catalog", "back", "magic"]
    child = subprocess.Popen(command, env=os.environ.copy(), stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as ours:
        # Each slice waits for this lock, and so do we: no two of them pass us.
        lock = "SELECT pg_advisory_{}(hashtext('cardsync catalog'))"
        while True:
            ours.execute(lock.format("lock"))
            if query(count, a_set)[0][0] > 50:
                break
            assert time.monotonic() < until
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.005)
            ours.execute(lock.format("unlock"))
        child.send_signal(signal.SIGKILL)
        child.wait()
    child.stderr.close()
    assert 50 < query(count, a_set)[0][0] < 400
    work = replace(service.work, settings=here)
    assert await renew_due(work) == 0
    query("UPDATE catalog_install SET held_until = now()")
    assert await renew_due(work) == 1
    assert {rarity for _, rarity in query(rows, a_set)} == {"common"}
    assert len(names()) == 400
    assert query("SELECT asked_at, back, refused IS NOT NULL FROM catalog_install") == [
        (None, False, True)
    ]

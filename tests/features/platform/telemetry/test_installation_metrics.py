"""Metrics of the installation: what waits, backups, agents and room, read with every scrape as the
role that is bound by row-level security.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from builders import a_csv, a_row
from cardsync.operations.processes.installation_metrics import InstallationMetrics
from cardsync.platform import clock
from cardsync.platform.backups import backup_reports
from cardsync.platform.database.urls import libpq_url


def scraped(settings, deaths=None):
    families = InstallationMetrics(settings, lambda: deaths or {}).collect()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
async def scrape(settings):
    async def now(**deaths):
        return await asyncio.to_thread(scraped, settings, deaths)

    return now


async def test_what_waits_is_counted_until_it_is_done(a_seller, scrape):
    seller = await a_seller()
    await seller.service.run_jobs()
    await seller.upload(a_csv(a_row()))
    clock.shift(timedelta(minutes=20))
    try:
        found = await scrape()
    finally:
        clock.reset()
    assert found["cardsync_work_waiting", "inventory"] == 1
    assert found["cardsync_work_oldest_seconds", "inventory"] >= 1200
    assert found["cardsync_jobs", "imports", "todo"] >= 1
    await seller.service.run_jobs()
    assert ("cardsync_work_waiting", "inventory") not in await scrape()


async def test_agents_are_calling_or_silent(a_seller, scrape, service):
    for minutes in (0, 30, 90, 60 * 24 * 8):
        seller = await a_seller()
        await service.sql(
            seller.id,
            "INSERT INTO agent_seen (seller_id, last_seen_at) VALUES (:id, :at)",
            id=seller.id,
            at=clock.now() - timedelta(minutes=minutes),
        )
    found = await scrape()
    assert found["cardsync_agents", "calling"] == 1
    assert found["cardsync_agents", "silent"] == 1
    assert found["cardsync_sellers",] >= 4


async def test_the_newest_backup_and_rehearsal_are_told(owner_url, scrape):
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute("DELETE FROM backup_report")
    found = await scrape()
    assert not [key for key in found if key[0].startswith("cardsync_backup")]
    now = clock.now()
    ago = now - timedelta(hours=3)
    backup_reports.record(owner_url, "backup", "one", ago, ago, None, 77)
    backup_reports.record(owner_url, "backup", "two", now, now, "the disk is full")
    backup_reports.record(owner_url, "rehearsal", "one", ago, ago, None)
    found = await scrape()
    assert found["cardsync_backup_age_seconds", "backup"] == pytest.approx(3 * 3600, abs=60)
    assert found["cardsync_backup_bytes", "backup"] == 77
    assert (found["cardsync_backup_failed", "backup"]) == 1
    assert (found["cardsync_backup_failed", "rehearsal"]) == 0


async def test_room_and_deaths_are_told(scrape):
    found = await scrape(web=2)
    assert found["cardsync_disk_free_bytes", "data"] > 0
    assert found["cardsync_process_deaths_total", "web"] == 2
    assert found["cardsync_database_up",] == 1


def test_a_database_that_is_away_leaves_the_others(settings):
    away = settings.model_copy(
        update={"database_url": "postgresql://nobody@127.0.0.1:9/none?connect_timeout=1"}
    )
    found = scraped(away)
    assert found["cardsync_database_up",] == 0
    assert found["cardsync_disk_free_bytes", "data"] > 0
    assert not [key for key in found if key[0].startswith("cardsync_work")]

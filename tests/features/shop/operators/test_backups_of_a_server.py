"""A backup of whatever server the suite runs on is taken by that server's programs, restored on
trial, and checked.
"""

import asyncio
import os
from functools import partial

import pytest

from builders import a_csv, a_row
from cardsync.operations.commands import _replayed
from cardsync.operations.doctor import examine
from cardsync.operations.installation_backups import InstallationBackups
from cardsync.operations.processes.copied_cluster import running_copy
from cardsync.operations.processes.embedded_host import bundled
from cardsync.shop.notices import mail_server


@pytest.mark.skipif("CARDSYNC_TEST_CITUS_URL" in os.environ, reason="each node is backed up alone")
async def test_a_backup_is_taken_and_can_be_restored(a_seller, owner_url, tmp_path):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 31))))
    settings = seller.service.settings.model_copy(
        update={"migration_database_url": owner_url, "backup_dir": tmp_path / "backups"}
    )
    said: list[str] = []
    run_copy = partial(running_copy, tmp_path / "copy", say=said.append)
    backups = InstallationBackups(settings, bundled().values(), _replayed, run_copy, said.append)
    made = backups.take()
    assert made.manifest.tables["card"] >= 30
    assert backups.rehearse(None).name == made.name
    # A host that makes none itself knows of those of another one.
    other = settings.model_copy(update={"backup_dir": tmp_path / "other"})
    lines = await asyncio.to_thread(lambda: list(examine(other, mail_server.check)))
    assert [one.state for one in lines if one.part == "backups"] == ["ok"]

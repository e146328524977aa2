"""A process connects and prices before its first preview, also while no database answers."""

from __future__ import annotations

from cardsync.platform.database.session import Database
from cardsync.prices.preview.warm_up import warm_up
from sent_statements import counting


async def test_a_process_reads_rules_before_its_first_preview(service):
    # Connections of its own have prepared nothing yet, so they send whole statements.
    url = service.settings.database_url
    async with Database.open(url, pool=1, hot_pool=0) as database, counting(database) as sent:
        await warm_up(database)
        sent.read()
        assert sent.statements("FROM pricing_rule") >= 1
        assert sent.statements("FROM pricing_sale") >= 1
        assert sent.statements("FROM account") >= 1


async def test_a_database_that_does_not_answer_is_no_failure():
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    async with Database.open(url, pool=1, hot_pool=0, seconds=2) as database:
        await warm_up(database)

"""Every cause of a pricing run has its words on the pages of runs."""

from typing import get_args

from cardsync.dashboard.pages.pricing_runs import CAUSES
from cardsync.prices.models import RunTrigger


def test_every_cause_has_its_words():
    assert set(CAUSES) == set(get_args(RunTrigger))

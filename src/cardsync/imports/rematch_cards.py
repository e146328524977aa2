"""Marks a seller's cards as matched after a catalog was loaded, if the catalog adopted their
provisional products. `platform/work/runner.py` runs this stream of work; loading a catalog marks
its sellers as due.

Each slab of cards is a transaction that finds the next cards to update, so the work of a killed
worker continues with the next slab.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import procrastinate

from cardsync.access.activity import note_by
from cardsync.platform import clock
from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import (
    Figure,
    OneAtATime,
    forget,
    give_up,
    mark,
    mark_of,
)
from cardsync.platform.plurals import counted
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import REMATCHED_CARDS, Work, WorkDue, jobs
from cardsync.stock.pictures.ask import ask_for_pictures

ACTION: Final = "catalog.cards_matched"
ACTOR: Final = "sweep"
_ADOPT: Final = """
    UPDATE card c SET product_id = coalesce(p.adopted_by, p.id), match = 'matched',
           updated_at = :now
      FROM product p
     WHERE c.seller_id = :seller AND p.id = c.product_id
       AND c.id = ANY (ARRAY(
           SELECT k.id FROM card k JOIN product q ON q.id = k.product_id
            WHERE k.seller_id = :seller AND k.match IN ('provisional', 'ambiguous')
              AND (NOT q.provisional OR q.adopted_by IS NOT NULL)
            ORDER BY k.id LIMIT :slab FOR UPDATE OF k))
"""


async def _rematch(work: Work, hold: WorkDue, due: WorkDue) -> None:
    seller_id, slab = due.seller_id, work.settings.slab_rows
    while True:
        now = clock.now()
        async with work.database.tenant(seller_id) as session:
            values = {"seller": seller_id, "now": now, "slab": slab}
            matched = await run(session, _ADOPT, values)
            if matched:
                summary = f"{counted(matched, 'card', 'cards')} matched by a catalog"
                note_by(session, seller_id, ACTOR, ACTION, summary, now)
                # Figures by product are outdated now.
                await mark(session, seller_id, Figure.OFFERS, Figure.CELLS, Figure.RECOMMENDATIONS)
                await ask_for_pictures(session, seller_id)
            if matched < slab:
                await forget(session, due)
                return


STREAM: Final[runner.Stream[WorkDue, WorkDue]] = runner.Stream(
    REMATCHED_CARDS,
    OneAtATime(),
    oldest=partial(mark_of, REMATCHED_CARDS),
    work=_rematch,
    fail=give_up,
)


@jobs.task(name="inventory.rematch", queue="imports", pass_context=True)
async def rematch_cards(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, rematch_cards, context, seller_id)

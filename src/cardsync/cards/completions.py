"""Completes a search while it is typed, with the seller's own sets, product lines, lists
and rules.
"""

from __future__ import annotations

from cardsync.access.caller import Caller
from cardsync.cards.names_in_search import own_names
from cardsync.database.snapshot_reads import Reading
from cardsync.search.completion import Completion, OwnNames, complete, field_at_end

OWN_FIELDS = ("set", "game", "list", "rule")


async def complete_search(reading: Reading, caller: Caller, text: str) -> list[Completion]:
    """Complete the end of a search. Nothing is read unless the seller's own names may be written
    there.
    """
    if (field := field_at_end(text)) not in OWN_FIELDS:
        return complete(text, OwnNames())
    own = await own_names(reading.rows, caller.seller_id, caller.member_id, field)
    return complete(text, own)

"""Checks whether a caller may bind the shop, that is, make and pay offers. The owner and the
owner's keys may; assistants and staff may only draft offers.
"""

from __future__ import annotations

from cardsync.access.caller import Caller
from cardsync.platform import errors


def must_bind_shop(caller: Caller) -> None:
    """Raise OwnerRequired or RefusedByGrant unless the caller may bind the shop."""
    caller.must_be_owner()
    if caller.identity.grant_id is not None:
        raise errors.RefusedByGrant(
            "assistants can only draft offers; a member sends and pays them"
        )

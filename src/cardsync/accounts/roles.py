"""What only an owner may do. The operations ask, so that every door is closed alike."""

from __future__ import annotations

from cardsync import errors
from cardsync.accounts.caller import Caller


def need_owner(caller: Caller) -> None:
    """The holder of a key may do what an owner may. Raises OwnerRequired."""
    if caller.role != "owner":
        raise errors.OwnerRequired

"""Finds the group of rate limits that a route declares, and reads the limits of all groups from the
settings.

A route in a narrower group than GENERAL declares that group in its `opt`: `opt=UPLOADS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from cardsync.platform.limits import Limit, read_limit
from cardsync.platform.settings import Settings


class Group(StrEnum):
    GENERAL = "general"
    UPLOADS = "uploads"
    SYNC_REQUEST = "sync_request"
    DISCOVERY = "discovery"
    WRITES = "writes"
    PICTURES = "pictures"
    SIGN_IN = "sign_in"
    SIGN_IN_ACCOUNT = "sign_in_account"
    SIGN_IN_ADDRESS = "sign_in_address"
    ANONYMOUS = "anonymous"
    BUYLIST = "buylist"


_OPTION = "rate_limit"
UPLOADS = {_OPTION: Group.UPLOADS}
SYNC_REQUEST = {_OPTION: Group.SYNC_REQUEST}
DISCOVERY = {_OPTION: Group.DISCOVERY}
WRITES = {_OPTION: Group.WRITES}
PICTURES = {_OPTION: Group.PICTURES}


def group_of(opt: Mapping[str, Any]) -> Group:
    """Return the group that a route declares; GENERAL if it declares none."""
    return Group(opt.get(_OPTION, Group.GENERAL))


def groups_of(opt: Mapping[str, object]) -> tuple[Group, ...]:
    """Return the groups that count a request of a known caller. Pictures are not in GENERAL,
    because a page loads forty of them.
    """
    own = group_of(opt)
    return (own,) if own in (Group.GENERAL, Group.PICTURES) else (Group.GENERAL, own)


def limits_of(settings: Settings) -> dict[Group, Limit]:
    """Return the limits of the groups whose limit is on."""
    read = {group: read_limit(getattr(settings, f"rate_limit_{group}")) for group in Group}
    return {group: limit for group, limit in read.items() if limit is not None}

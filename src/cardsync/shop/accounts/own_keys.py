"""Lists, makes and revokes an account's API keys, for its owner.

A key is shown only when it is made. `cardsync admin key` has the same operations for all accounts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys, sealed
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.entitlements import is_paid
from cardsync.access.keys import MintedKey
from cardsync.access.member_models import AccountDeletion
from cardsync.access.models import ApiKey
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, each_of, rows_as
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts.schemas import KeyBody, KeysBody
from cardsync.shop.limits import KEY_NAME_CHARACTERS, KEYS_OF_ACCOUNT


async def listed(source: Source, caller: Caller, now: datetime) -> KeysBody:
    """Return the account's keys, oldest first, and the reason if the account can't make a key.
    Raises OwnerRequired.
    """
    caller.must_be_owner()
    rows, problem = await each_of(
        source, keys.listed(source, caller.seller_id), _refusal(source, caller, now)
    )
    return KeysBody(
        [struct_of(KeyBody, key) for key in rows],
        str(problem) if problem else None,
    )


async def _refusal(source: Source, caller: Caller, now: datetime) -> errors.Problem | None:
    account = caller.account
    if not is_paid(account.plan, account.trial_ends_at, now):
        plan = "trial has ended" if account.plan == "trial" else f"plan is {account.plan}"
        return errors.PaidPlanRequired(
            f"a new key needs a paid plan, and this account's {plan}; existing keys keep working"
        )
    if await rows_as(source, AccountDeletion, caller.seller_id, ""):
        return errors.AccountEnding()
    return None


async def mint(
    session: AsyncSession,
    caller: Caller,
    name: str,
    now: datetime,
) -> MintedKey:
    """Create a key. Raises OwnerRequired, PaidPlanRequired, AccountEnding, InvalidPayload."""
    caller.must_be_owner()
    if problem := await _refusal(session, caller, now):
        raise problem
    name = " ".join(name.split())
    if not 1 <= len(name) <= KEY_NAME_CHARACTERS:
        raise errors.InvalidPayload(f"name: use 1 to {KEY_NAME_CHARACTERS} characters")
    await locked(session, Lock.SHOP, caller.seller_id)
    good = select(func.count()).where(
        ApiKey.seller_id == caller.seller_id,
        ApiKey.revoked_at.is_(None),
        ApiKey.ends_at.is_(None) | (ApiKey.ends_at > now),
    )
    if (await session.scalar(good) or 0) >= KEYS_OF_ACCOUNT:
        raise errors.InvalidPayload(
            f"name: an account can have at most {KEYS_OF_ACCOUNT} keys; revoke one first"
        )
    minted = await keys.mint(session, caller.seller_id, name)
    note(session, caller, "key.made", f"key {minted.key_id} created", now, risk="medium")
    return minted


async def replace(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    key_id: int,
    now: datetime,
) -> MintedKey:
    """Replace a valid key by a new key. The old key stays valid until the new key is used, for at
    most KEY_OVERLAP_HOURS. Raises OwnerRequired, AccountEnding, NotFound, InvalidPayload.
    """
    caller.must_be_owner()
    if await session.get(AccountDeletion, caller.seller_id):
        raise errors.AccountEnding
    if not await session.scalar(
        select(ApiKey.id).where(ApiKey.seller_id == caller.seller_id, ApiKey.id == key_id)
    ):
        raise errors.NotFound(f"there is no key {key_id}")
    ends_at = now + timedelta(hours=settings.key_overlap_hours)
    minted = await keys.replace(session, caller.seller_id, key_id, ends_at)
    if minted is None:
        raise errors.InvalidPayload(
            f"key {key_id} is revoked or being replaced already; make a new key instead"
        )
    summary = f"key {minted.key_id} created to replace key {key_id}"
    note(session, caller, "key.replaced", summary, now, risk="medium")
    return minted


async def mark(
    session: AsyncSession,
    caller: Caller,
    key_id: int,
    now: datetime,
    *,
    own_script: bool,
    confirmed: bool,
) -> None:
    """Mark a key as a script of the shop's own, whose writes the loss limits ignore, or unmark it.
    Marking needs the owner's confirmation. Raises OwnerRequired, NotFound, InvalidPayload.
    """
    caller.must_be_owner()
    key = await session.scalar(
        select(ApiKey).where(ApiKey.seller_id == caller.seller_id, ApiKey.id == key_id)
    )
    if key is None or (key.revoked_at is not None and own_script):
        raise errors.NotFound(f"there is no active key {key_id}")
    if own_script and not confirmed:
        raise errors.InvalidPayload(
            "confirm: must be true, because loss limits will no longer apply to this key"
        )
    if key.own_script == own_script:
        return
    await sealed.mark_key(session, caller.seller_id, key_id, own_script=own_script)
    session.expire(key)
    words = "no longer has loss limits: my own script" if own_script else "has loss limits again"
    action = "key.own_script" if own_script else "key.limited"
    note(session, caller, action, f"key {key_id} {words}", now, risk="high")


async def revoke(
    session: AsyncSession,
    caller: Caller,
    key_id: int,
    now: datetime,
) -> None:
    """Revoke a key. A second revocation changes nothing. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    own = select(ApiKey).where(ApiKey.seller_id == caller.seller_id, ApiKey.id == key_id)
    key = await session.scalar(own.with_for_update())
    if key is None:
        raise errors.NotFound(f"there is no key {key_id}")
    if key.revoked_at is None:
        await keys.revoke(session, key_id)
        note(session, caller, "key.revoked", f"key {key_id} revoked", now, risk="medium")

"""Checks and hashes passwords with Argon2 in threads, two at a time, so that a flood of sign-ins
exhausts neither the event loop nor the memory.
"""

from __future__ import annotations

import asyncio

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from cardsync.platform import errors, limits

HASHER = PasswordHasher()
# Hashes of another installation may cost up to the library's default.
_ALWAYS = PasswordHasher()
_HASH_MOST = 200
_turns = asyncio.Semaphore(2)
# A hash of no member's password, so that a check without a member takes as long as one with a
# member. One per hasher, because tests use a cheaper one.
_nobodys: dict[PasswordHasher, str] = {}


def acceptable(password: str) -> str:
    """Return the new password. Raises InvalidPayload if its length is wrong."""
    if not limits.PASSWORD_CHARACTERS <= len(password) <= limits.PASSWORD_CHARACTERS_MOST:
        raise errors.InvalidPayload(
            f"password: use {limits.PASSWORD_CHARACTERS} to {limits.PASSWORD_CHARACTERS_MOST} characters"
        )
    return password


async def hashed(password: str) -> str:
    async with _turns:
        return await asyncio.to_thread(HASHER.hash, password)


async def is_right(stored: str | None, password: str) -> bool:
    """Check a password; a missing hash takes as long as a stored one."""
    async with _turns:
        return await asyncio.to_thread(_verify, stored, password)


def _verify(stored: str | None, password: str) -> bool:
    if stored is None and HASHER not in _nobodys:
        _nobodys[HASHER] = HASHER.hash("nobody's")
    try:
        HASHER.verify(stored or _nobodys[HASHER], password)
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


def takes_no_more(stored: str) -> bool:
    """Return whether checking the hash costs at most as much as one that is made here."""
    try:
        asked = extract_parameters(stored)
    except InvalidHashError:
        return False
    most = HASHER
    return (
        asked.time_cost <= max(most.time_cost, _ALWAYS.time_cost)
        and asked.memory_cost <= max(most.memory_cost, _ALWAYS.memory_cost)
        and asked.parallelism <= max(most.parallelism, _ALWAYS.parallelism)
        and len(stored) <= _HASH_MOST
    )

"""Checks and hashes passwords with Argon2 in threads, at most two at a time, so that many sign-ins
exhaust neither the event loop nor the memory.
"""

from __future__ import annotations

import asyncio

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from cardsync.platform import errors, limits

HASHER = PasswordHasher()
# A hash from another installation may cost as much as the library's default.
_ALWAYS = PasswordHasher()
_HASH_MOST = 200
_turns = asyncio.Semaphore(2)
# The hash of a password that no member has, so that a check for an unknown member takes as long as
# any other. There is one for each hasher, because tests use a cheaper hasher.
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
    """Check a password. Without a stored hash, the check takes as long as with one."""
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
    """Return whether checking this hash costs at most as much as checking a hash of this
    installation.
    """
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

"""Creates members and credentials by database functions, within a session's transaction. There is
no other way to create credentials for signing in.

The application's database role may not write these rows. Functions of the tables' owner write them,
and require a proof that only a process with the installation's seal can make
(`platform/secret.py`). So an injected SQL statement cannot create an owner, a key or a session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import SEAL


async def put_member(
    session: AsyncSession,
    seller_id: int,
    email: str,
    role: str,
    name: str,
    password_hash: str | None = None,
) -> int | None:
    """Add a member, or change the role of a member who has not joined yet. Return the member's ID;
    None if the email address belongs to another member.
    """
    values = (seller_id, email, role, name, password_hash or "")
    found: int | None = await _run(session, "put_member", values)
    return found


async def set_role(session: AsyncSession, seller_id: int, member_id: int, role: str) -> None:
    await _run(session, "set_member_role", (seller_id, member_id, role))


async def set_password(session: AsyncSession, member_id: int, password_hash: str) -> None:
    await _run(session, "set_member_password", (member_id, password_hash))


async def set_email(session: AsyncSession, seller_id: int, member_id: int, email: str) -> bool:
    """Change a member's email address. Return False if it belongs to another member."""
    values = (seller_id, member_id, email)
    return await _run(session, "set_member_email", values) is not None


async def put_invitation(
    session: AsyncSession,
    member_id: int,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Add an invitation, which replaces an earlier one of the same member."""
    await _run(session, "put_invitation", (member_id, token_hash), now, expires_at)


async def add_session(
    session: AsyncSession,
    member_id: int,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime,
) -> None:
    await _run(session, "add_member_session", (member_id, token_hash), now, expires_at)


async def add_passkey(
    session: AsyncSession,
    member_id: int,
    name: str,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    now: datetime,
) -> int:
    values = (member_id, name, credential_id, public_key)
    return int(await _run(session, "add_passkey", values, sign_count, now))


async def add_key(session: AsyncSession, seller_id: int, name: str, key_hash: bytes) -> int:
    return int(await _run(session, "add_api_key", (seller_id, name, key_hash)))


async def replace_key(
    session: AsyncSession, seller_id: int, key_id: int, key_hash: bytes, ends_at: datetime
) -> int | None:
    """Add a key that replaces another key; that key works until `ends_at` at most. Return the new
    ID; None if the other key is revoked or is already being replaced.
    """
    made: int | None = await _run(
        session, "replace_api_key", (seller_id, key_id, key_hash), ends_at
    )
    return made


async def mark_key(session: AsyncSession, seller_id: int, key_id: int, *, own_script: bool) -> bool:
    """Set whether a key is the shop's own script. Return False if the key does not exist or is
    revoked.
    """
    values = (seller_id, key_id, int(own_script))
    return await _run(session, "mark_api_key", values) is not None


async def settle_key(session: AsyncSession, seller_id: int, key_id: int, now: datetime) -> None:
    """Revoke the key that this key replaces."""
    call = text("SELECT settle_api_key(:seller, :key, :now)")
    await session.execute(call, {"seller": seller_id, "key": key_id, "now": now})


async def add_token(
    session: AsyncSession,
    seller_id: int,
    name: str,
    token_hash: bytes,
    scopes: Sequence[str],
    now: datetime,
    expires_at: datetime | None,
) -> int:
    values = (seller_id, name, token_hash, ",".join(scopes))
    return int(await _run(session, "add_access_token", values, now, expires_at))


async def add_code(
    session: AsyncSession,
    seller_id: int,
    member_id: int,
    code_hash: bytes,
    client_id: str,
    redirect_uri: str,
    challenge: str,
    audience: str,
    scopes: Sequence[str],
    *,
    buyer_data: bool,
    expires_at: datetime,
) -> None:
    """Add the code of a consent, which the client redeems once for a grant."""
    said = (client_id, redirect_uri, challenge, audience, ",".join(scopes), int(buyer_data))
    await _run(session, "add_oauth_code", (seller_id, member_id, code_hash, *said), expires_at)


async def redeem_code(session: AsyncSession, code_hash: bytes, now: datetime) -> int | None:
    """Redeem a code and return the ID of the new grant; None if the code was used or
    has expired.
    """
    call = text("SELECT redeem_oauth_code(:hash, :now)")
    made: int | None = await session.scalar(call, {"hash": code_hash, "now": now})
    return made


async def add_grant_token(
    session: AsyncSession,
    seller_id: int,
    grant_id: int,
    token_hash: bytes,
    scopes: Sequence[str],
    now: datetime,
    expires_at: datetime,
) -> bool:
    """Add an access token to a grant, with scopes of the grant. Return False if the grant has
    ended, or the member who gave it is no longer an owner.
    """
    values = (seller_id, grant_id, token_hash, ",".join(scopes))
    return await _run(session, "add_grant_token", values, now, expires_at) is not None


async def add_refresh_token(
    session: AsyncSession,
    seller_id: int,
    grant_id: int,
    token_hash: bytes,
    expires_at: datetime,
) -> None:
    await _run(session, "add_refresh_token", (seller_id, grant_id, token_hash), expires_at)


async def use_refresh_token(session: AsyncSession, token_hash: bytes, now: datetime) -> bool:
    """Mark the token as used. Return whether this was its first use."""
    call = text("SELECT use_refresh_token(:hash, :now)")
    return await session.scalar(call, {"hash": token_hash, "now": now}) is not None


async def end_keys(
    session: AsyncSession, seller_id: int, now: datetime, key_id: int | None = None
) -> None:
    """Revoke one key of the seller, or all of them."""
    await _end(session, "end_api_key", seller_id, key_id, now)


async def end_tokens(
    session: AsyncSession, seller_id: int, now: datetime, token_id: int | None = None
) -> None:
    await _end(session, "end_access_token", seller_id, token_id, now)


async def end_grants(
    session: AsyncSession, seller_id: int, now: datetime, grant_id: int | None = None
) -> None:
    """Revoke one grant of the seller, or all of them, with their tokens. The transaction must be in
    the seller's tenant scope.
    """
    await _end(session, "end_oauth_grant", seller_id, grant_id, now)


async def _end(
    session: AsyncSession, function: str, seller_id: int, only: int | None, now: datetime
) -> None:
    call = f"SELECT {function}(:seller, CAST(:only AS bigint), :now)"
    await session.execute(text(call), {"seller": seller_id, "only": only, "now": now})


async def is_known(session: AsyncSession) -> bool:
    """Return whether the database has this process's seal."""
    asked = {"message": "ready", "proof": _proof(session, "ready", ())}
    return bool(await session.scalar(text("SELECT is_sealed(:message, :proof)"), asked))


async def _run(
    session: AsyncSession, function: str, values: Sequence[int | str | bytes], *more: object
) -> Any:
    """Call a database function. The proof covers the function's name and `values`."""
    given = [*values, _proof(session, function, values), *more]
    named = {f"v{number}": value for number, value in enumerate(given)}
    call = f"SELECT {function}({', '.join(f':{name}' for name in named)})"
    return await session.scalar(text(call), named)


def _proof(session: AsyncSession, function: str, values: Sequence[int | str | bytes]) -> bytes:
    seal: Callable[[], bytes] | None = session.info.get(SEAL)
    if seal is None:
        raise RuntimeError(f"{function}: this process has no seal")
    key = seal()
    message = "|".join([function, *map(_plain, values)]).encode()
    return hashlib.sha256(key + hashlib.sha256(key + message).digest()).digest()


def _plain(value: int | str | bytes) -> str:
    """Encode a value so that it does not contain the separator of the proof's message."""
    if isinstance(value, int):
        return str(value)
    return (value.encode() if isinstance(value, str) else value).hex()

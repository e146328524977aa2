"""Checks a request against the limits of its key or address. Raises `RateLimited` if the client
must wait.

The checked buckets are stored in the scope, and the outermost middleware shows them in the headers
of every answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cardsync.access.caller import Identity
from cardsync.access.rate_limits import gcra
from cardsync.access.rate_limits.addresses import client_of
from cardsync.access.rate_limits.bucket import Bucket
from cardsync.access.rate_limits.buckets import Buckets
from cardsync.access.rate_limits.groups import Group, group_of, groups_of, limits_of
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.setting_groups.access_settings import read_networks
from cardsync.platform.settings import Settings

if TYPE_CHECKING:
    from litestar.types import Scope

# For so many seconds a valid key counts as valid while its requests are refused, so that a flood of
# requests causes no queries.
BELIEVED_SECONDS = 0.5
_LOOKED_AT = ScopeValue[list[Bucket]]("rate_limit_buckets")


class RateLimits:
    """The rate limits of a web process, which has one object of this class."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.buckets = Buckets(database)
        self._limits = limits_of(settings)
        self._trusted = read_networks(settings.trusted_proxies)

    def of_key(self, scope: Scope, key_id: int, opt: Mapping[str, object]) -> list[Bucket]:
        """Return the buckets of a key that are on: GENERAL, and the narrower group that the route's
        `opt` declares.
        """
        return self._of_bearer(scope, f"k{key_id}", opt)

    def of_token(
        self, scope: Scope, token_id: int, grant_id: int | None, opt: Mapping[str, object]
    ) -> list[Bucket]:
        """Return the buckets of a token. All tokens of a grant share its buckets, so that new
        tokens do not raise the limits.
        """
        return self._of_bearer(scope, _holder("token", token_id, grant_id), opt)

    def _of_bearer(self, scope: Scope, holder: str, opt: Mapping[str, object]) -> list[Bucket]:
        return self._look_at(scope, holder, *groups_of(opt))

    async def admit_further(self, scope: Scope, who: Identity, opt: Mapping[str, object]) -> None:
        """Admit a call that an admitted request makes to this process itself. GENERAL has already
        counted that request.
        """
        group = group_of(opt)
        if group is not Group.GENERAL:
            holder = _holder(who.credential, who.credential_id, who.grant_id)
            await self._admit(scope, self._look_at(scope, holder, group))

    async def admit_member(self, scope: Scope, member_id: int, opt: Mapping[str, object]) -> None:
        """Admit one request of a signed-in member. All browsers of the member share the limit."""
        await self._admit(scope, self._look_at(scope, f"m{member_id}", *groups_of(opt)))

    async def admit_link(
        self, scope: Scope, link_id: int, opt: Mapping[str, object], kind: str
    ) -> None:
        """Admit one request of a link, which several phones may share. `kind` names the kind of
        link, because links of different kinds may have the same ID.
        """
        await self._admit(scope, self._of_bearer(scope, f"{kind}{link_id}", opt))

    async def admit_visitor(self, scope: Scope, opt: Mapping[str, object]) -> None:
        """Admit one request of a visitor to a public buylist, limited by address. The pictures of a
        page have their own limit.
        """
        group = Group.PICTURES if group_of(opt) is Group.PICTURES else Group.BUYLIST
        await self._admit(scope, self._look_at(scope, self._client(scope), group))

    def refuse_flood(self, scope: Scope, buckets: Sequence[Bucket]) -> None:
        """Refuse a request whose key was valid a moment ago and has no requests left. Raises
        RateLimited.
        """
        now = clock.monotonic()
        for bucket in buckets:
            if (
                bucket.is_empty(now)
                and not bucket.unsaid
                and now - bucket.checked_at < BELIEVED_SECONDS
            ):
                self._refuse(scope, bucket)

    async def admit_key(self, scope: Scope, buckets: Sequence[Bucket]) -> None:
        """Admit one request of a key that was just found valid. Raises RateLimited."""
        now = clock.monotonic()
        for bucket in buckets:
            bucket.checked_at = now
        await self._admit(scope, buckets)

    async def admit_anonymous(self, scope: Scope) -> None:
        """Count a request without a valid credential. Raises RateLimited."""
        await self._admit(scope, self._look_at(scope, self._client(scope), Group.ANONYMOUS))

    def of_address(self, scope: Scope) -> list[Bucket]:
        """Return the bucket of the client's address, if its limit is on."""
        return self._found(self._client(scope), Group.ANONYMOUS)

    async def admit_sign_in(self, scope: Scope, account: str) -> None:
        """Admit an attempt to sign in. One limit is for the address and the account together, so
        that a member who mistypes a password blocks nobody else. Two more are for each alone,
        against guesses from many addresses or at many accounts. The table stores only a hash of the
        account's name.
        """
        name = hashlib.sha256(account.strip().casefold().encode()).hexdigest()[:32]
        client = self._client(scope)
        buckets = [
            *self._found(f"{client}:{name}", Group.SIGN_IN),
            *self._found(client, Group.SIGN_IN_ADDRESS),
            *self._found(name, Group.SIGN_IN_ACCOUNT),
        ]
        _LOOKED_AT.put(scope, buckets)
        await self._admit(scope, buckets)

    def _look_at(self, scope: Scope, holder: str, *groups: Group) -> list[Bucket]:
        buckets = self._found(holder, *groups)
        _LOOKED_AT.put(scope, buckets)
        return buckets

    def _found(self, holder: str, *groups: Group) -> list[Bucket]:
        return [
            self.buckets.find(group, self._limits[group], holder)
            for group in groups
            if group in self._limits
        ]

    async def _admit(self, scope: Scope, buckets: Sequence[Bucket]) -> None:
        now = clock.monotonic()
        for bucket in buckets:
            if bucket.is_empty(now):
                await self._turn_away(scope, bucket)
        for bucket in buckets:
            if not await self.buckets.take(bucket):
                await self._turn_away(scope, bucket)

    async def _turn_away(self, scope: Scope, bucket: Bucket) -> None:
        await self.buckets.settle(bucket)
        self._refuse(scope, bucket)

    def _refuse(self, scope: Scope, bucket: Bucket) -> None:
        self.buckets.note(bucket)
        _LOOKED_AT.put(scope, [bucket])
        wait = gcra.seconds_until_admitted(bucket.limit, bucket.tat, clock.monotonic())
        message = (
            f"more than {bucket.limit.count} requests a minute (limit {bucket.group});"
            f" try again in {wait} s"
        )
        raise errors.RateLimited(message, headers={"Retry-After": str(wait)})

    def _client(self, scope: Scope) -> str:
        peer = scope.get("client")
        forwarded = [
            value.decode("latin-1")
            for name, value in scope["headers"]
            if name == b"x-forwarded-for"
        ]
        return client_of(peer[0] if peer else None, forwarded, self._trusted)


def limit_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers RateLimit-Policy and RateLimit of the IETF draft, with one item for each
    checked limit. If no limit was checked (an unknown path, a static file), they show the limit of
    the client's address, which this request did not use.
    """
    buckets = _LOOKED_AT.find(scope)
    if not buckets:
        limits: RateLimits | None = scope["litestar_app"].state.get("rate_limits")
        buckets = limits.of_address(scope) if limits is not None else []
    if not buckets:
        return []
    now = clock.monotonic()
    policies = ", ".join([bucket.policy for bucket in buckets])
    states = ", ".join([bucket.state(now) for bucket in buckets])
    return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", states.encode())]


def _holder(credential: str, credential_id: int, grant_id: int | None) -> str:
    return f"{credential[0]}{credential_id}" if grant_id is None else f"g{grant_id}"

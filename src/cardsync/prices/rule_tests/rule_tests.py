"""Reads, writes and checks a seller's rule tests.

Each write locks the seller's state row, as for rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Generic, TypeVar, cast

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.access.undo_rows import UndoRows
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors, limits
from cardsync.platform.database.columns import Base
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.declared_fields import Declared, Field, changed_struct
from cardsync.platform.described import Like
from cardsync.platform.read_json import given_fields, read, read_by
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Annotation, JsonMapping, JsonObject
from cardsync.prices.engine.rules import NAME, QUERY
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.models import RuleTest
from cardsync.prices.rule_tests.check import judge
from cardsync.prices.rule_tests.expectations import read_expectation
from cardsync.prices.rule_tests.schemas import RuleTestVerdict, RuleTestVerdicts

_FIELDS: Final = ("name", "search", "expectation")
# Fields of a body that set nothing: a client may send back a response that has them.
_SHOWN: Final = frozenset({"id", "created_at", "updated_at"})
Row = TypeVar("Row", bound=Base)


def _expectation(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return read_expectation(value).text


def test_fields(struct: str, expectation: Callable[[object], str]) -> Annotation:
    """Return the struct of a body that changes a rule test."""
    expected = read_by(str, expectation, Like(str))
    own = {"name": NAME, "search": QUERY, "expectation": Field(body=expected)}
    fields = [Declared(name, str, False, None, field) for name, field in own.items()]
    return changed_struct(struct, fields, forbid_unknown_fields=True)


RuleTestFields: Final = test_fields("RuleTestFields", _expectation)


class KeptTests(Generic[Row]):
    """The rule tests of pricing, or those of buying: their table, the struct of their bodies, and
    their kind and name in the activity feed.
    """

    def __init__(self, table: type[Row], fields: Annotation, kind: str, called: str) -> None:
        self._table: Annotation = table
        self._fields = fields
        self._called = called
        self.kind = kind
        self.undo = UndoRows(
            RowImages(table, *_FIELDS),
            f"{called} {{id}} was changed in the meantime",
            Lock.STATE,
            key="id",
            room=(limits.RULE_TESTS, "rule tests, the most allowed"),
        )

    async def of(self, source: Source, seller_id: int) -> list[Row]:
        """Return the rule tests, oldest first."""
        return await rows_as(source, self._table, seller_id, "ORDER BY id")

    async def create(
        self, session: AsyncSession, caller: Caller, body: JsonMapping, now: datetime
    ) -> Row:
        """Create a rule test. Raise InvalidPayload, InvalidQuery."""
        caller.must_be_owner()
        values = self._read(body)
        for name in ("name", "expectation"):
            if name not in values:
                raise errors.InvalidPayload(f"{name}: is missing")
        await sync_state.locked(session, caller.seller_id)
        if len(await self.of(session, caller.seller_id)) >= limits.RULE_TESTS:
            raise errors.InvalidPayload(
                f"there are already {limits.RULE_TESTS} rule tests, the most allowed"
            )
        asked = values.get("search") or ""
        values["search"] = await need_readable(session, caller.seller_id, asked, "search")
        row = self._table(seller_id=caller.seller_id, created_at=now, updated_at=now, **values)
        session.add(row)
        await session.flush()
        self._note(session, caller, row, "created", now, became=_test_json(row))
        return cast("Row", row)

    async def change(
        self,
        session: AsyncSession,
        caller: Caller,
        test_id: int,
        body: JsonMapping,
        now: datetime,
    ) -> Row:
        """Change the fields of a rule test that the body names. Raise NotFound, InvalidPayload,
        InvalidQuery.
        """
        values = self._read(body)
        row = await self._locked(session, caller.seller_id, test_id)
        if values.get("search", row.search) != row.search:
            asked = values["search"]
            values["search"] = await need_readable(session, caller.seller_id, asked, "search")
        was = _test_json(row)
        if was | values != was:
            for name, value in values.items():
                setattr(row, name, value)
            row.updated_at = now
            await session.flush()
            done = f"changed: {', '.join(values)}"
            self._note(session, caller, row, done, now, was=was, became=_test_json(row))
        return cast("Row", row)

    async def remove(
        self, session: AsyncSession, caller: Caller, test_id: int, now: datetime
    ) -> None:
        """Delete a rule test. Raise NotFound."""
        row = await self._locked(session, caller.seller_id, test_id)
        await session.delete(row)
        self._note(session, caller, row, "deleted", now, was=_test_json(row))

    def _read(self, body: Mapping[str, object]) -> JsonObject:
        """Read the fields of a test. Raises InvalidPayload for an unknown or wrong field."""
        given = {name: value for name, value in body.items() if name not in _SHOWN}
        return given_fields(read(given, self._fields))

    async def _locked(self, session: AsyncSession, seller_id: int, test_id: int) -> Annotation:
        await sync_state.locked(session, seller_id)
        mine = select(self._table).where(self._table.seller_id == seller_id)
        row = await session.scalar(mine.where(self._table.id == test_id))
        if row is None:
            raise errors.NotFound(f"there is no rule test {test_id}")
        return row

    def _note(
        self,
        session: AsyncSession,
        caller: Caller,
        row: Annotation,
        done: str,
        now: datetime,
        *,
        was: JsonMapping | None = None,
        became: JsonMapping | None = None,
    ) -> None:
        note(
            session,
            caller,
            f"{self.kind}_{done.partition(':')[0]}",
            f"{self._called} {row.id} “{row.name}” {done}",
            now,
            before=was,
            after=became,
            undo={"kind": self.kind, "id": row.id, "was": was, "became": became},
        )


TESTS: Final = KeptTests(RuleTest, RuleTestFields, "pricing.rule_test", "rule test")
tests_of: Final = TESTS.of
create: Final = TESTS.create


async def read_all(source: Source, caller: Caller) -> list[RuleTest]:
    """Return the rule tests, oldest first."""
    caller.must_be_owner()
    return await tests_of(source, caller.seller_id)


def _need_no_grant(caller: Caller) -> None:
    """Refuse an assistant, because rule tests restrict the assistant's own saves of rules. Raises
    OwnerRequired, RefusedByGrant.
    """
    caller.must_be_owner()
    if caller.identity.grant_id is not None:
        raise errors.RefusedByGrant("an assistant can create rule tests, but not change them")


async def change(
    session: AsyncSession,
    caller: Caller,
    test_id: int,
    body: JsonMapping,
    now: datetime,
) -> RuleTest:
    """Change the fields of a rule test that the body names. Raise NotFound, InvalidPayload,
    InvalidQuery, RefusedByGrant.
    """
    _need_no_grant(caller)
    return await TESTS.change(session, caller, test_id, body, now)


async def remove(session: AsyncSession, caller: Caller, test_id: int, now: datetime) -> None:
    """Delete a rule test. Raise NotFound, RefusedByGrant."""
    _need_no_grant(caller)
    await TESTS.remove(session, caller, test_id, now)


async def verdicts_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> RuleTestVerdicts:
    """Judge every test on the prices that the rules would ask if all drafts were published. This is
    a heavy read, which prices every card that a test selects.
    """
    caller.must_be_owner()
    seconds = settings.read_seconds
    async with database.bounded(
        caller.seller_id, seconds, snapshot=True, work=Work.PRICES_ALL
    ) as session:
        tests = await tests_of(session, caller.seller_id)
        if not tests:
            return RuleTestVerdicts(0, [])
        live = await run_of(session, await session.get_one(Account, caller.seller_id), now)
        drafts = [replace(rule, state="published") for rule in live.rules]
        verdicts = await judge(session, caller.seller_id, replace(live, rules=drafts), tests)
    return RuleTestVerdicts(sum(verdict.red for verdict in verdicts), verdicts)


async def verdicts_of(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    run: Run,
) -> list[RuleTestVerdict]:
    """Judge every test on the prices that a run would ask. This is a heavy read for a save of
    rules: the run holds the rules, which are not committed yet.
    """
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        return await judge(
            session, caller.seller_id, run, await tests_of(session, caller.seller_id)
        )


def _test_json(row: Annotation) -> dict[str, object]:
    return {name: getattr(row, name) for name in _FIELDS}

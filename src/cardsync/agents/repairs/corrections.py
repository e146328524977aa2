"""Stores a seller's corrections: a verified selector is served to the agent, and a failed selector
is not proposed again.

A row records the replacement of one selector by another. Its state changes from proposed to
verified, and from either state to disabled, which is final.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.errors import CorrectionDisabled
from cardsync.agents.limits import CORRECTION_FAILURES, CORRECTIONS_READ
from cardsync.agents.repairs.models import WorkflowCorrection, WorkflowHeal
from cardsync.agents.repairs.schemas import FailedRepair
from cardsync.agents.repairs.shared_repairs import digest_of, lookup_of, shared_for, vote
from cardsync.platform import errors
from cardsync.platform.value_types import JsonObject


@dataclass(frozen=True)
class Step:
    """A step of a workflow, and the selector that no longer finds its element."""

    workflow: str
    step_name: str
    selector: str

    @property
    def lookup(self) -> bytes:
        return lookup_of(self.workflow, self.step_name, self.selector)


@dataclass(frozen=True)
class KnownOfElement:
    """The stored evidence about a lost element: a correction to serve, or the element's earlier
    appearance and the selectors that failed.
    """

    cached: WorkflowCorrection | None
    seen: JsonObject | None
    refused: frozenset[str]


async def known(session: AsyncSession, seller_id: int, step: Step, now: datetime) -> KnownOfElement:
    """Return the stored evidence. The seller's newest verified correction has precedence over a
    shared repair.
    """
    rows = (
        await session.scalars(
            select(WorkflowCorrection)
            .where(
                WorkflowCorrection.seller_id == seller_id,
                WorkflowCorrection.workflow == step.workflow,
                WorkflowCorrection.step_name == step.step_name,
            )
            .order_by(WorkflowCorrection.verified_at.desc().nulls_last(), WorkflowCorrection.id)
            .limit(CORRECTIONS_READ)
        )
    ).all()
    shared, failed = await shared_for(session, step.lookup)
    refused = failed | {row.selector for row in rows if row.state == "disabled"}
    own = [row for row in rows if row.lookup == step.lookup and row.state == "verified"]
    served = own[0] if own else None
    if served is None:
        for repair in shared:
            if repair.selector not in refused:
                served = await keep(
                    session, seller_id, step, repair.selector, repair.confidence, None, now,
                    verified=True,
                )  # fmt: skip
                break
    # If the lost selector was itself a correction, the correction's row has the element's
    # appearance.
    seen = next((row.seen for row in rows if row.selector == step.selector and row.seen), None)
    return KnownOfElement(served, seen, frozenset(refused))


async def keep(
    session: AsyncSession,
    seller_id: int,
    step: Step,
    selector: str,
    confidence: float,
    seen: dict[str, object] | None,
    now: datetime,
    *,
    verified: bool,
) -> WorkflowCorrection | None:
    """Insert or update a correction and return it; return None if it is disabled."""
    row = insert(WorkflowCorrection).values(
        seller_id=seller_id,
        lookup=step.lookup,
        digest=digest_of(step.lookup, selector),
        workflow=step.workflow,
        step_name=step.step_name,
        old_selector=step.selector,
        selector=selector,
        confidence=confidence,
        state="verified" if verified else "proposed",
        seen=seen,
        created_at=now,
        verified_at=now if verified else None,
    )
    changed: dict[str, object] = {"verified_at": now, "state": "verified"} if verified else {}
    if seen is not None:
        changed |= {"seen": row.excluded.seen, "confidence": row.excluded.confidence}
    statement = row.on_conflict_do_update(
        index_elements=["seller_id", "digest"],
        set_=changed or {"digest": row.excluded.digest},
        where=WorkflowCorrection.state != "disabled",
    ).returning(WorkflowCorrection)
    return (
        await session.scalars(statement, execution_options={"populate_existing": True})
    ).one_or_none()


async def verify(
    session: AsyncSession,
    caller: Caller,
    heal_id: int | None,
    correction_id: int | None,
    selector: str,
    now: datetime,
) -> int:
    """Record that the agent found the step's element with `selector`; return the correction's ID.

    Raises NotFound, InvalidPayload or CorrectionDisabled.
    """
    step, confidence = await _step_of(session, caller.seller_id, heal_id, correction_id)
    if selector == step.selector:
        raise errors.InvalidPayload("selector is the one that was reported as lost")
    correction = await keep(
        session,
        caller.seller_id,
        step,
        selector,
        confidence,
        None,
        now,
        verified=True,
    )
    if correction is None:
        raise CorrectionDisabled
    note(session, caller, "repair.verified", f"correction {correction.id}: {_named(step)}", now)
    await session.flush()
    await vote(session, correction, "verified", now)
    return correction.id


async def _step_of(
    session: AsyncSession,
    seller_id: int,
    heal_id: int | None,
    correction_id: int | None,
) -> tuple[Step, float]:
    """Return the step and the new selector's confidence: that of the proposal, or 1.0 if a person
    or an agent found the selector.
    """
    if (heal_id is None) == (correction_id is None):
        raise errors.InvalidPayload("name either heal_id or correction_id")
    if correction_id is not None:
        row = await _correction(session, seller_id, correction_id)
        return Step(row.workflow, row.step_name, row.old_selector), row.confidence
    heal = await session.get(WorkflowHeal, (seller_id, heal_id))
    if heal is None:
        raise errors.NotFound(f"there is no heal {heal_id}")
    step = Step(heal.workflow, heal.step_name, heal.selector)
    if heal.correction_id is None:
        return step, 1.0
    return step, (await _correction(session, seller_id, heal.correction_id)).confidence


async def _correction(
    session: AsyncSession,
    seller_id: int,
    correction_id: int,
) -> WorkflowCorrection:
    row = await session.get(WorkflowCorrection, (seller_id, correction_id))
    if row is None:
        raise errors.NotFound(f"there is no correction {correction_id}")
    return row


async def fail(
    session: AsyncSession,
    caller: Caller,
    correction_id: int,
    error: str | None,
    now: datetime,
) -> FailedRepair:
    """Count a failure of the correction; the third failure disables it for good.

    Raises NotFound.
    """
    row = WorkflowCorrection
    last = row.failures + 1 >= CORRECTION_FAILURES
    statement = (
        update(row)
        .where(row.seller_id == caller.seller_id, row.id == correction_id)
        .values(
            failures=row.failures + 1,
            last_error=error,
            state=case((last, "disabled"), else_=row.state),
            disabled_at=case((last & row.disabled_at.is_(None), now), else_=row.disabled_at),
        )
        .returning(row)
    )
    failed = (
        await session.scalars(statement, execution_options={"populate_existing": True})
    ).one_or_none()
    if failed is None:
        raise errors.NotFound(f"there is no correction {correction_id}")
    step = Step(failed.workflow, failed.step_name, failed.old_selector)
    action = "repair.disabled" if failed.state == "disabled" else "repair.failed"
    note(session, caller, action, f"correction {failed.id}: {_named(step)}", now)
    await session.flush()
    if failed.state == "disabled":
        await vote(session, failed, "failed", now)
    return FailedRepair(failed.id, failed.state, failed.failures)


def _named(step: Step) -> str:
    return f"{step.workflow}, {step.step_name}"

"""Defines the columns of every piece of accepted work, whatever its stream (an upload, a pricing
run, a rollback, an event), and the two reasons for which a worker stops without a failure.
"""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column
from structlog.contextvars import get_contextvars

from cardsync.platform.database.columns import KeyPart, RowId
from cardsync.platform.telemetry import spans


class LeaseLost(Exception):
    """Another worker took the piece over; the open transaction must not be committed."""


class CancelRequested(Exception):
    """The seller cancelled; the worker stops before its next commit."""


def request_id() -> str | None:
    """Return the id of the current request, or of the request that caused the current work."""
    return get_contextvars().get("request_id")


class Origin:
    """The request or the work that created a piece; logs and traces name it, whichever job does the
    work.
    """

    request_id: Mapped[str | None] = mapped_column(default=request_id)
    traceparent: Mapped[str | None] = mapped_column(default=spans.traceparent)


def origin() -> dict[str, str | None]:
    """Return the current origin as the values of a statement."""
    return {"request_id": request_id(), "traceparent": spans.traceparent()}


class Piece(Origin):
    """The columns of a piece of work that `platform/work/runner.py` reads and writes."""

    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    # `attempts` counts starts, except starts that a worker has undone; a killed worker cannot undo
    # its start. `failures` counts failures of the work itself.
    attempts: Mapped[int] = mapped_column(server_default="0")
    failures: Mapped[int] = mapped_column(server_default="0")

"""The columns of every piece of accepted work, whatever its stream: an upload, a pricing run, a
rollback, an event; and the two reasons for which a worker stops although nothing failed.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Identity
from sqlalchemy.orm import Mapped, mapped_column


class LeaseLost(Exception):
    """Another worker took the piece over; the open transaction must not be committed."""


class CancelRequested(Exception):
    """The seller cancelled; the worker stops at this slab boundary."""


class Piece:
    """The columns that `work/runner.py` reads and writes of a piece of work."""

    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    # Starts that no worker put back (a killed one cannot), and failures of the work itself.
    attempts: Mapped[int] = mapped_column(server_default="0")
    failures: Mapped[int] = mapped_column(server_default="0")

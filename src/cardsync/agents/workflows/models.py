"""The tables `workflow_pack` and `workflow_pack_kill` (global): the operator's published workflow
packs, and the versions that agents must not use.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import NOW, Base, Moment


class WorkflowPack(Base):
    """`pack` is the canonical JSON that `signature` signs, behind the domain of packs."""

    __tablename__ = "workflow_pack"
    marketplace: Mapped[str] = mapped_column(Text, primary_key=True)
    locale: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    pack: Mapped[str] = mapped_column(Text)
    signature: Mapped[str] = mapped_column(Text)
    published_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class WorkflowPackKill(Base):
    """A version that is withdrawn, whether it was published here or came with the agent."""

    __tablename__ = "workflow_pack_kill"
    marketplace: Mapped[str] = mapped_column(Text, primary_key=True)
    locale: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    killed_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)

"""The shapes of sellers and of the installation, as the operators' API and pages show them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from cardsync.agents.seller_state.sync_kinds import SyncMode
from cardsync.platform.backups.backup_reports import BackupState

Plan = Literal["free", "trial", "paid", "complimentary", "founder"]


class SellerShown(msgspec.Struct):
    """`leaves_at` is when an account is removed whose owner asked to delete it."""

    id: int
    name: str
    email: str
    created_at: datetime
    members: int
    """The number of members"""
    plan: Plan
    """The plan that the account has paid for"""
    trial_ends_at: datetime | None
    suspended: bool
    past_due: bool
    sync_mode: SyncMode
    product_lines: list[str]
    last_sync_at: datetime | None
    leaves_at: datetime | None
    """When the account is removed, on the owner's wish"""


class SellersShown(msgspec.Struct):
    sellers: list[SellerShown]
    """The shops of the installation"""
    total: int
    page: int
    total_pages: int


class LineShown(msgspec.Struct):
    name: str
    """The product line by its internal name"""
    label: str
    """The name of the line at the marketplace"""
    category_id: int
    products: int
    """The products of the line in the catalog"""


class QueueShown(msgspec.Struct):
    """`waiting` counts the sellers whose work is due, and `oldest_seconds` is how long the longest
    of them has waited; `resting` counts those whose work was put back for a while.
    """

    stream: str
    """The kind of work"""
    waiting: int
    """Sellers whose work is due"""
    oldest_seconds: int
    resting: int
    """Sellers whose work was put back for a while"""
    put_back: int
    """How many were put back at least once"""


class JobsShown(msgspec.Struct):
    waiting: int
    running: int
    """How many run now"""
    failed: int
    """How many failed"""


class StatementShown(msgspec.Struct):
    """`calls` is zero for a statement that runs now; else `seconds` is the mean of its calls. No
    value is in `statement`.
    """

    seconds: float
    """How long it takes"""
    calls: int
    """How often it ran; 0: it runs now"""
    state: str
    """The present activity of the statement"""
    statement: str
    """The statement, without values"""


class ReleaseShown(msgspec.Struct):
    product: str
    """agent or desktop"""
    version: str
    platform: str
    channel: str
    percentage: int
    published_at: datetime
    expires_at: datetime
    killed: bool


class CatalogImportShown(msgspec.Struct):
    source: str
    """Where the catalog is from"""
    rows: int
    added: int
    """Products that are new"""
    changed: int
    """Products that changed"""
    vanished: int
    """Products that the source no longer has"""
    skipped: int
    """Rows that could not be read"""
    finished_at: datetime


class InstallationShown(msgspec.Struct):
    """The state of the installation. `unknown_lines` says whether a label that no line has becomes
    a line of the account that uploads it.
    """

    lines: list[LineShown]
    """The product lines of the marketplace"""
    unknown_lines: bool
    """An unknown label becomes a product line of the account"""
    queues: list[QueueShown]
    """The work that waits, by its kind"""
    jobs: JobsShown
    """Work that runs or waits"""
    statements: list[StatementShown]
    """The statements that cost the database most"""
    releases: list[ReleaseShown]
    """The releases of the agent and the desktop wrapper"""
    catalog_imports: list[CatalogImportShown]
    """The newest imports of the catalog"""
    backups: BackupState
    """The state of the backups"""

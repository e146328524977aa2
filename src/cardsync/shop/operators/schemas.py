"""The JSON structs of sellers and of the installation, for the operators' API and pages."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from cardsync.agents.seller_state.sync_kinds import SyncMode
from cardsync.platform.backups.backup_reports import BackupState

Plan = Literal["free", "trial", "paid", "complimentary", "founder"]


class SellerShown(msgspec.Struct):
    """A seller. `leaves_at` is the time at which the account will be removed if its owner has
    requested the deletion.
    """

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
    """When the account will be removed at the owner's request, or null"""


class SellersShown(msgspec.Struct):
    sellers: list[SellerShown]
    """The shops of the installation"""
    total: int
    page: int
    total_pages: int


class LineShown(msgspec.Struct):
    name: str
    """The internal name of the product line"""
    label: str
    """The marketplace's name of the line"""
    category_id: int
    products: int
    """The number of products of the line in the catalog"""


class QueueShown(msgspec.Struct):
    """A kind of work. `waiting` is the number of sellers whose work is due, and `oldest_seconds` is
    the longest time that one of them has waited. `resting` is the number of sellers whose work
    pauses after failures.
    """

    stream: str
    """The kind of work"""
    waiting: int
    """The number of sellers whose work is due"""
    oldest_seconds: int
    resting: int
    """The number of sellers whose work pauses after failures"""
    put_back: int
    """The number of sellers whose work was put back at least once"""


class JobsShown(msgspec.Struct):
    waiting: int
    running: int
    """The number of running jobs"""
    failed: int
    """The number of failed jobs"""


class StatementShown(msgspec.Struct):
    """A SQL statement. For a statement that is running now, `calls` is 0 and `seconds` is its time
    so far; otherwise `seconds` is the mean of its calls. `statement` has no values.
    """

    seconds: float
    """The mean time of a call, or the time so far"""
    calls: int
    """The number of calls; 0 if the statement is running now"""
    state: str
    """The current state of the statement"""
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
    """The source of the catalog"""
    rows: int
    added: int
    """The number of new products"""
    changed: int
    """The number of changed products"""
    vanished: int
    """The number of products that the source no longer has"""
    skipped: int
    """The number of rows that could not be read"""
    finished_at: datetime


class InstallationShown(msgspec.Struct):
    """The state of the installation. If `unknown_lines` is true, a product line in an upload that
    no known line has becomes a line of the account.
    """

    lines: list[LineShown]
    """The product lines of the marketplace"""
    unknown_lines: bool
    """Whether an unknown product line in an upload becomes a line of the account"""
    queues: list[QueueShown]
    """The waiting work, by kind"""
    jobs: JobsShown
    """The numbers of jobs"""
    statements: list[StatementShown]
    """The SQL statements that take the most time"""
    releases: list[ReleaseShown]
    """The releases of the agent and the desktop wrapper"""
    catalog_imports: list[CatalogImportShown]
    """The newest imports of the catalog"""
    backups: BackupState
    """The state of the backups"""

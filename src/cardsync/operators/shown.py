"""The shapes of sellers and of the installation, as the operators' API and pages show them."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.operations.backup_reports import BackupState
from cardsync.seller_state.sync_kinds import SyncMode

Plan = Literal["free", "trial", "paid", "complimentary", "founder"]


class SellerShown(msgspec.Struct):
    """`leaves_at` is when an account is removed whose owner asked to delete it."""

    id: int
    name: str
    email: str
    created_at: str
    members: int
    plan: Plan
    trial_ends_at: str | None
    suspended: bool
    past_due: bool
    sync_mode: SyncMode
    product_lines: list[str]
    last_sync_at: str | None
    leaves_at: str | None


class SellersShown(msgspec.Struct):
    sellers: list[SellerShown]
    total: int
    page: int
    total_pages: int


class LineShown(msgspec.Struct):
    name: str
    label: str
    category_id: int
    products: int


class QueueShown(msgspec.Struct):
    """`waiting` counts the sellers whose work is due, and `oldest_seconds` is how long the longest
    of them has waited; `resting` counts those whose work was put back for a while.
    """

    stream: str
    waiting: int
    oldest_seconds: int
    resting: int
    put_back: int


class JobsShown(msgspec.Struct):
    waiting: int
    running: int
    failed: int


class StatementShown(msgspec.Struct):
    """`calls` is zero for a statement that runs now; else `seconds` is the mean of its calls. No
    value is in `statement`.
    """

    seconds: float
    calls: int
    state: str
    statement: str


class ReleaseShown(msgspec.Struct):
    product: str
    version: str
    platform: str
    channel: str
    percentage: int
    published_at: str
    expires_at: str
    killed: bool


class CatalogImportShown(msgspec.Struct):
    source: str
    rows: int
    added: int
    changed: int
    vanished: int
    skipped: int
    finished_at: str


class InstallationShown(msgspec.Struct):
    """The state of the installation. `unknown_lines` says whether a label that no line has becomes
    a line of the account that uploads it.
    """

    lines: list[LineShown]
    unknown_lines: bool
    queues: list[QueueShown]
    jobs: JobsShown
    statements: list[StatementShown]
    releases: list[ReleaseShown]
    catalog_imports: list[CatalogImportShown]
    backups: BackupState

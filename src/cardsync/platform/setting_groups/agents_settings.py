"""The settings of syncs and of the data that they leave."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Syncs(BaseModel):
    sync_interval_minutes: int = Field(
        360,
        ge=30,
        description="Scheduled sync of sellers without an interval of their own",
    )
    sync_retry_seconds: int = Field(
        300,
        ge=1,
        description="First back-off after a failed scheduled cycle; doubles",
    )
    sync_cooldown_seconds: int = Field(
        3600,
        ge=0,
        description="Post-sync cooldown of manual requests",
    )
    stale_lock_seconds: int = Field(
        300, ge=1, description="A sync lock without refresh for so long is stale"
    )
    lease_seconds: float = Field(
        30,
        gt=0,
        le=240,
        description="Life of a price-mutation lease between renewals",
    )
    slab_rows: int = Field(
        20_000,
        ge=1,
        le=20_000,
        description="Rows of one transaction of an import",
    )
    rollback_seconds: int = Field(
        86_400,
        ge=1,
        description="A rollback expires this long after it was ready, unless it was applied",
    )
    claim_ttl_seconds: int = Field(600, ge=1, description="Life of a claimed agent task")
    feedback_wait_seconds: float = Field(
        20,
        gt=0,
        description="Feedback waits so long for earlier order uploads to be applied, then answers 503",
    )
    sweep_seconds: float = Field(
        5,
        gt=0,
        description="Accepted work older than this is nudged again",
    )
    last_seen_flush_seconds: float = Field(
        1,
        gt=0,
        description="How often a web process writes agents' last-seen times",
    )
    release_refresh_seconds: float = Field(
        60,
        gt=0,
        description="How often a web process reads the releases again, beside the notices of changes",
    )

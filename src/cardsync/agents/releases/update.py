"""Fills the update fields that the heartbeat and GET /desktop/update share, without a statement."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

import msgspec

from cardsync.agents.releases.known_releases import KnownReleases
from cardsync.agents.releases.offer import Installation, Published, choose
from cardsync.platform.value_types import JsonObject


class ReleaseRecord(msgspec.Struct):
    """`release_signature` covers this record, as canonical JSON."""

    version: str
    platform: str
    sha256: str
    min_from: str | None
    expires_at: str


class Update(msgspec.Struct, kw_only=True):
    """The fields after the first two are sent only when update_available is true."""

    update_available: bool
    force_update: bool
    latest_version: str | msgspec.UnsetType = msgspec.UNSET
    download_url: str | msgspec.UnsetType = msgspec.UNSET
    signature: str | msgspec.UnsetType = msgspec.UNSET
    sha256: str | msgspec.UnsetType = msgspec.UNSET
    release: ReleaseRecord | msgspec.UnsetType = msgspec.UNSET
    release_signature: str | msgspec.UnsetType = msgspec.UNSET


_record = msgspec.json.Decoder(ReleaseRecord).decode


def download_path(release: Published) -> str:
    parts = (
        release.product,
        str(release.version),
        release.platform,
        release.file_name,
    )
    return "/downloads/" + "/".join(quote(part) for part in parts)


def update_fields(
    known: KnownReleases,
    product: str,
    asks: Installation,
    now: datetime,
    origin: str,
) -> JsonObject:
    """Return the arguments of `Update`, or of a class that extends it."""
    offer = choose(known.shelf(product), asks, now)
    release = offer.release
    fields = {"update_available": release is not None, "force_update": offer.must_update}
    if release is None:
        return fields
    return fields | {
        "latest_version": str(release.version),
        "download_url": origin + download_path(release),
        "signature": release.signature,
        "sha256": release.sha256,
        "release": _record(release.record),
        "release_signature": release.record_signature,
    }

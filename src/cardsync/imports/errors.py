"""API errors of uploads."""

from __future__ import annotations

from cardsync.platform.errors import Problem


class ObjectStorePipelineDisabled(Problem):
    """Presigned uploads are switched off for this account; send the CSV itself to POST
    /api/v1/sync.
    """

    status = 403
    code = "object_store_pipeline_disabled"


class AlreadyUsed(Problem):
    """This upload URL was used already; each URL accepts one upload."""

    status = 409
    code = "already_used"


class InvalidProductLine(Problem):
    """The product line is not configured for this account."""

    status = 422
    code = "invalid_product_line"


class InvalidObjectKey(Problem):
    """The key is missing, not of the required shape, or names no uploaded object of this
    account.
    """

    status = 422
    code = "invalid_object_key"


class CsvProcessingFailed(Problem):
    """The CSV could not be processed."""

    status = 422
    code = "csv_processing_failed"

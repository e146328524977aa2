"""Sets up the service's structured logs. The logs contain no secret, key, name or address.

Each line names its request, job and seller: `request_id`, `seller_id` and other fields are bound
once (structlog's contextvars) for all lines of a request or job.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog

# Each function gets every line before it is written, and may add to it.
LISTENERS: list[Callable[[MutableMapping[str, object]], None]] = []


class Unfailing:
    """A text stream that drops lines when the disk is full, so that a full disk does not end a
    request.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def setup_logging(level: str, form: str) -> None:
    """Set up the logs as `json`, `text` or `auto`, which is text on a terminal."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if text
        else structlog.processors.JSONRenderer()
    )
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_detail,
        add_report,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, Unfailing(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer)
    handler.setFormatter(formatter)
    logging.basicConfig(
        handlers=[handler],
        level=max(number, logging.WARNING),
        force=True,
    )


# A quoted value may span several lines, so the text up to the next part from Python or SQLAlchemy
# is removed.
_DETAIL = re.compile(
    r"\n(DETAIL|CONTEXT): .*?(?=\n\nThe above exception |\n\nDuring handling of |\n\[SQL: |\n\(Background on |\nTraceback |\Z)",
    re.DOTALL,
)


def _without_detail(_logger: object, _method: str, event: dict[str, object]) -> dict[str, object]:
    """Remove PostgreSQL's DETAIL, which quotes values of the row."""
    if "exception" in event:
        event["exception"] = _DETAIL.sub("", str(event["exception"]))
    return event


def add_report(_logger: object, _method: str, event: dict[str, object]) -> dict[str, object]:
    for listener in LISTENERS:
        listener(event)
    return event

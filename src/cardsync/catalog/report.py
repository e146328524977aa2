"""Reports the skipped records of an import: lines about the first records, and a CSV file of all
records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from cardsync.catalog.sources.source_record import Broken
from cardsync.platform.errors import CommandError
from cardsync.platform.kit.csv_table import encoded
from cardsync.web.csv_parts import PART

_SHOWN = 20


def skipped_lines(broken: Sequence[Broken]) -> Iterator[str]:
    """Yield a line for each of the first skipped records."""
    for one in broken[:_SHOWN]:
        yield f"skipped {one.where}: {one.reason}"
    if len(broken) > _SHOWN:
        yield f"skipped {len(broken) - _SHOWN:,} more; --skipped FILE writes them all"


def write_csv(path: Path, header: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    """Write a CSV file. Raises CommandError if the file cannot be written."""
    try:
        with path.open("wb") as file:
            file.write(encoded([header]))
            while some := [*islice(rows, PART)]:
                file.write(encoded(some))
    except OSError as e:
        raise CommandError(f"{path.name} cannot be written: {e.strerror}") from e


def write_skipped(path: Path, broken: Sequence[Broken]) -> None:
    """Write every skipped record with its reason."""
    write_csv(path, Broken._fields, iter(broken))

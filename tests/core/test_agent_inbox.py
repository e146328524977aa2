"""The inbox of the agent: the file that is uploaded, and the bytes that are sent."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cardsync_agent.inbox import InventoryExport, NoExport, as_sent, header_problem, take_newest

HEADER = b"TCGplayer Id,Product Name,Condition,Total Quantity,TCG Marketplace Price\r\n"
FILE = HEADER + b'"1","Lotus","Near Mint","1","9.99"\r\n'
OLD = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    place = tmp_path / "inbox"
    place.mkdir()
    return place


def drop(inbox: Path, name: str, content: bytes = FILE, mtime: datetime = OLD) -> Path:
    path = inbox / name
    path.write_bytes(content)
    os.utime(path, (mtime.timestamp(), mtime.timestamp()))
    return path


def take(
    inbox: Path,
    known: frozenset[str] = frozenset(),
    sleep: Callable[[float], None] = lambda seconds: None,
) -> InventoryExport:
    return take_newest(inbox, inbox.parent / "spool", known, 2.0, sleep)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (FILE, None),
        (b"\xef\xbb\xbf" + FILE, None),
        (HEADER.upper(), None),
        (
            (
                b'" tcgplayer id ","PRODUCT NAME",Extra,"Condition","Total Quantity ",TCG'
                b" Marketplace Price\n"
            ),
            None,
        ),
        (gzip.compress(FILE, mtime=0), None),
        (gzip.compress(FILE * 20_000, mtime=0), None),
        (b"", "is no pricing export"),
        (b"Order #,Buyer Name\n", "is no pricing export"),
        (
            b"TCGplayer Id,Product Name,Condition,Total Quantity\n",
            "lacks the column TCG Marketplace Price",
        ),
        (b"\x1f\x8bnonsense", "is damaged gzip"),
        (b"\x1f\x8b", "is no pricing export"),
        (bytes(range(200, 256)), "is no pricing export"),
    ],
)
def test_a_header_is_usable_or_says_why_not(
    tmp_path: Path, head: bytes, problem: str | None
) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(head)
    assert header_problem(path) == problem


def test_the_newest_usable_file_is_taken(inbox: Path) -> None:
    drop(inbox, "older.csv", mtime=OLD - timedelta(hours=1))
    wanted = drop(inbox, "export.CSV.GZ", gzip.compress(FILE))
    drop(inbox, "orders.csv", b"Order #,Buyer Name\n", OLD + timedelta(hours=1))
    drop(inbox, ".hidden.csv", mtime=OLD + timedelta(hours=2))
    drop(inbox, "export.csv.crdownload", mtime=OLD + timedelta(hours=2))
    drop(inbox, "notes.md", mtime=OLD + timedelta(hours=2))
    (inbox / "folder.csv").mkdir()
    found = take(inbox)
    assert found.path == wanted
    assert found.exported_at == OLD
    assert found.sha256 == hashlib.sha256(wanted.read_bytes()).hexdigest()
    assert (inbox.parent / "spool").read_bytes() == wanted.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (None, b"", "no export in inbox"),
        ("a.csv", b"Order #\n", "no usable export in inbox: a.csv is no pricing export"),
        ("a.csv", FILE, "no new export in inbox (a.csv was imported before)"),
    ],
)
def test_nothing_to_take_has_a_reason(
    inbox: Path, name: str | None, content: bytes, reason: str
) -> None:
    if name:
        drop(inbox, name, content)
    with pytest.raises(NoExport) as none:
        take(inbox, known=frozenset({hashlib.sha256(FILE).hexdigest()}))
    assert str(none.value) == reason


@pytest.mark.parametrize("name", ["export.xlsx", "Export.XLS", "export.ods", "export.csv"])
def test_a_newer_file_that_cannot_be_read_is_told(inbox: Path, name: str) -> None:
    drop(inbox, "old.csv")
    drop(inbox, name, b"\xd0\xcf\x11\xe0", OLD + timedelta(hours=1))
    workbook = f"{name} is an Excel workbook (xls): open it and save it as CSV"
    with pytest.raises(NoExport) as none:
        take(inbox, known=frozenset({hashlib.sha256(FILE).hexdigest()}))
    assert str(none.value) == f"no new export in inbox ({workbook}; old.csv was imported before)"
    (inbox / "old.csv").unlink()
    with pytest.raises(NoExport) as none:
        take(inbox)
    assert str(none.value) == f"no usable export in inbox: {workbook}"


def test_the_text_that_a_spreadsheet_saves_is_taken(inbox: Path) -> None:
    drop(inbox, "old.csv")
    text = FILE.decode().replace(",", "\t").encode("utf-16")
    wanted = drop(inbox, "export.txt", text, OLD + timedelta(hours=1))
    assert take(inbox).path == wanted


def test_a_missing_inbox_is_an_empty_one(inbox: Path) -> None:
    inbox.rmdir()
    with pytest.raises(NoExport, match="no export in inbox"):
        take(inbox)


def test_a_young_file_is_taken_once_it_has_rested(inbox: Path) -> None:
    wanted = drop(inbox, "new.csv", mtime=datetime.now(UTC))
    rests: list[float] = []
    assert take(inbox, sleep=rests.append).path == wanted
    assert rests == [2.0]


def test_a_file_still_growing_is_waited_for(inbox: Path) -> None:
    path = drop(inbox, "new.csv", HEADER, datetime.now(UTC))
    parts = [b'"1","Lotus","Near Mint","1","9.99"\r\n', b'"2","Ring","Near Mint","1","1.99"\r\n']

    def another_part_comes(seconds: float) -> None:
        if parts:
            path.write_bytes(path.read_bytes() + parts.pop(0))

    assert take(inbox, sleep=another_part_comes).size == len(HEADER) + 71


def test_a_file_that_never_rests_gives_way_to_the_next(inbox: Path) -> None:
    drop(inbox, "endless.csv", mtime=datetime.now(UTC))
    whole = drop(inbox, "whole.csv")
    writes = 0

    def it_is_written_again(seconds: float) -> None:
        nonlocal writes
        writes += 1
        drop(inbox, "endless.csv", FILE * (writes + 1), datetime.now(UTC))

    assert take(inbox, sleep=it_is_written_again).path == whole
    whole.unlink()
    with pytest.raises(NoExport, match=r"endless\.csv is still being written"):
        take(inbox, sleep=it_is_written_again)


def test_a_file_from_the_future_was_exported_now(inbox: Path) -> None:
    drop(inbox, "new.csv", mtime=datetime.now(UTC) + timedelta(days=1))
    assert abs(take(inbox).exported_at.timestamp() - time.time()) < 10


@pytest.mark.parametrize(
    ("content", "packed"),
    [(FILE, False), (FILE * 200, True), (gzip.compress(FILE * 9000, mtime=0), False)],
)
def test_a_large_plain_file_is_packed_always_to_the_same_bytes(
    content: bytes, packed: bool
) -> None:
    sent = as_sent(content)
    assert (sent != content) == packed
    assert sent == as_sent(content)
    assert not packed or gzip.decompress(sent) == content

"""A large file that is no catalog is refused before it fills the memory of a worker."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardsync.catalog.sources import csv_file, json_file
from cardsync.catalog.sources.read import slices
from cardsync.catalog.sources.source_record import CatalogError

MB = 1_000_000
LARGE = 60 * MB
HEAD = ("game", "set_name", "product_name", "number")
OWN = b"game,set_name,product_name\n"
# In these first bytes a file is Scryfall's.
SCRYFALL = b'[{"tcgplayer_id":1,"collector_number":"1","x":'
ROW = b"magic,A set,A card\n"


def again(piece: bytes) -> Iterator[bytes]:
    """Pieces of so many bytes, until the file is large."""
    block = piece * (MB // len(piece))
    return itertools.repeat(block, LARGE // len(block))


KINDS = {
    "no line breaks.csv": [b"x" * 10, *again(b"junk")],
    "one row.csv": [OWN, *again(b"junk")],
    "too many rows.csv": [OWN, *again(ROW)],
    "an open quote.csv": [OWN, ROW, b'magic,"A set', *again(ROW)],
    "columns.csv": again(b"column,"),
    "no text.csv": [OWN, *again(bytes(range(128, 256)))],
    "nothing.csv": again(b"\0"),
    "rows of other games.csv": [OWN, *again(b"chess,A set,A card\n")],
    "page.csv": [b"<!doctype html><html>", *again(b"<p>Not found</p>")],
    "products.csv": [b"productId,name,groupId\n", *again(b"x,y,z\n")],
    "zeros.csv.gz": [OWN, *again(b"\0")],
    "breaks.csv.gz": again(b"\n"),
    "one text.json": [SCRYFALL, b'"', *again(b"junk")],
    "one list.json": [SCRYFALL, b"[", *again(b"[],")],
    "one name.json": [b'{"meta":1,"data":{"', *again(b"name")],
    "numbers.json": [SCRYFALL, b"1},", *again(b"1,")],
    "no records.json": [b'{"tcgplayer_id":1,"collector_number":2,"x":[', *again(b"1,")],
    "one set.json": [b'{"meta":{},"data":{"A":{"cards":[', *again(b'{"name":1},')],
    "spaces.json": [b'[ "tcgplayer_id" "collector_number"', *again(b" ")],
    "one card.json": [b'{"localId":"1","cards":[', *again(b"[1],")],
    "spaces.json.xz": [b'[{"tcgplayer_id":"collector_number"},', *again(b" ")],
}
CHILD = """
import json, resource, sys
from pathlib import Path
from cardsync.catalog import load_catalog
from cardsync.catalog.load_catalog import Report, _gathered
from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.read import slices
json_file.RECORD_BYTES = 4_000_000
load_catalog._ROWS_MOST = 100_000
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sorted(Path(sys.argv[1]).glob("*/*")):
    before = peak()
    try:
        _gathered(slices(path, "auto", None), Report(path.name), lambda line: None)
        said = ""
    except Exception as e:
        said = f"{type(e).__name__}: {e}"[:200]
    print(json.dumps([path.name, said, peak() - before]))
"""


def write(path: Path, pieces: Iterator[bytes]) -> None:
    path.parent.mkdir()
    suffix = path.suffix
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(suffix, open)
    level = {".gz": {"compresslevel": 1}, ".xz": {"preset": 0}}.get(suffix, {})
    with opened(path, "wb", **level) as file:
        file.writelines(pieces)


def test_a_large_file_of_junk_is_refused_in_little_memory(tmp_path):
    """It alone reads files as large as the memory that they may take, in a process of its own."""
    for at, (name, pieces) in enumerate(KINDS.items()):
        write(tmp_path / str(at) / name, iter(pieces))
    child = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path], capture_output=True, check=True, timeout=300
    )
    told = {
        name: (said, kilobytes)
        for name, said, kilobytes in map(json.loads, child.stdout.splitlines())
    }
    assert told.keys() == KINDS.keys()
    for name, (said, _) in told.items():
        assert said.startswith("CatalogError: "), (name, said)
    grown = {name: kilobytes // 1000 for name, (_, kilobytes) in told.items() if kilobytes > 10_000}
    assert sum(grown.values()) < 150, grown


@pytest.mark.parametrize("piece", [80, 1_000, 1 << 22])
def test_rows_are_the_same_however_the_file_is_cut(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(csv_file, "_PIECE", piece)
    path = tmp_path / "cards.csv"
    names = [f'Card {at}, the \n ""{at}th""' for at in range(200)]
    lines = [f'magic,A set,"{name}",{at:03}' for at, name in enumerate(names)]
    for mark, end in ((b"", "\n"), (b"\xef\xbb\xbf", "\r\n")):
        text = end.join(["game,set_name,product_name,number", *lines])
        path.write_bytes(mark + text.encode())
        found = [row for frame, broken in slices(path, "auto", None) for row in frame.to_dicts()]
        assert [row["product_name"] for row in found] == [one.replace('""', '"') for one in names]
        assert [row["number"] for row in found] == [f"{at:03}" for at in range(200)]


def test_a_broken_row_is_listed_and_the_others_are_read(tmp_path, monkeypatch):
    rows = [f"magic,A set,Card {at},{at}" for at in range(1, 101)]
    # A quote within a name does no harm.
    rows[60] = 'magic,A set,Playmat 24",61'
    for bad in ('magic,"A set,Card 0,0', "magic,A set,Card 0,0,more,and more"):
        path = tmp_path / "cards.csv"
        path.write_text("\n".join([",".join(HEAD), *rows[:50], bad, *rows[50:]]))
        for piece in (200, 1 << 22):
            monkeypatch.setattr(csv_file, "_PIECE", piece)
            monkeypatch.setattr(csv_file, "ROW_BYTES", 500)
            found = [*slices(path, "auto", None)]
            names = [name for frame, _ in found for name in frame["product_name"]]
            broken = [one for _, some in found for one in some]
            assert names == [row.split(",")[2] for row in rows], bad
            assert [one.where for one in broken] == ["row 51"], bad


def test_what_a_file_is_packed_with_is_seen_in_it(tmp_path):
    """Its name may not say so, or be wrong."""
    text = OWN + ROW
    for name in ("a.csv", "a.csv.gz", "a.csv.xz"):
        for packed in (text, gzip.compress(text), lzma.compress(text)):
            (tmp_path / name).write_bytes(packed)
            [(frame, broken)] = slices(tmp_path / name, "auto", None)
            assert (frame.height, broken) == (1, [])


def test_a_record_may_be_as_large_as_a_set(tmp_path, monkeypatch):
    path = tmp_path / "sets.json"
    some = [{"name": "x" * 400} for _ in range(20)]
    path.write_text(json.dumps(some))
    monkeypatch.setattr(json_file, "RECORD_BYTES", 1 << 17)
    assert [*json_file.items(path, "item")] == some
    path.write_text(json.dumps(some * 50))
    assert len([*json_file.items(path, "item")]) == 1000
    with pytest.raises(CatalogError, match="has a record of more than 0 MB, or none in so many"):
        json_file.few(path, "item")

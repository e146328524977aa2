"""`cardsync price`: one file in, one file out, nothing else needed."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import a_csv, a_row, read_csv
from cardsync.cli import program

GOOD = a_csv(
    a_row(1, market="1.20", price="1.00"),
    a_row(2, market="1.00", price="1.00"),
    a_row(3, quantity="-1"),
)


def price(path: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cardsync", "price", str(path), "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "content"), [("export.csv", GOOD), ("an export.csv.gz", gzip.compress(GOOD))]
)
def test_a_good_file(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    ran = price(tmp_path / name, out := tmp_path / "out put.csv")
    assert ran.returncode == 0, ran.stderr
    rows = read_csv(out.read_bytes())
    assert [
        (row["TCGplayer Id"], row["TCG Marketplace Price"], row["Add to Quantity"]) for row in rows
    ] == [("1", "1.1500", "0")]
    assert "3 rows read, 2 usable, 1 rejected" in ran.stdout
    assert "line 4: " in ran.stdout
    assert f"price updates: {out}" in ran.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [name, out.name]
    )  # no draft stays


def test_an_id_that_a_custom_listing_shares_is_left_out_and_told(tmp_path: Path) -> None:
    """The marketplace refuses a file that names an id twice."""
    custom = a_row(1, title="Signed", photo="https://x/p.jpg", market="9.00", price="1.00")
    rows = [a_row(1, market="1.20", price="1.00"), custom, a_row(2, market="1.20", price="1.00")]
    (tmp_path / "export.csv").write_bytes(a_csv(*rows))
    ran = price(tmp_path / "export.csv", out := tmp_path / "out.csv")
    assert [row["TCGplayer Id"] for row in read_csv(out.read_bytes())] == ["2"]
    assert "has the same ID and TCGplayer would refuse the file: 1\n" in ran.stdout


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"hello\n", "isn't a TCGplayer pricing export"),
        (GOOD.split(b"\r\n")[0] + b"\r\n", ""),
        (b"", ""),
        (gzip.compress(GOOD)[:-9], "damaged gzip"),
        (b"\x1f\x8b" + b"nonsense" * 20, "damaged gzip"),
    ],
    ids=["not a header", "only a header", "empty", "cut gzip", "no gzip"],
)
def test_a_bad_file_gets_one_sentence(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    ran = CliRunner().invoke(
        program, ["price", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "out.csv")]
    )
    assert ran.exit_code == 1, ran.stdout
    assert_one_sentence(ran.stderr)
    assert told in ran.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.night
def test_other_mistakes_get_one_sentence_too(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(GOOD)
    unknown = price(tmp_path / "good.csv", tmp_path / "out.csv", "--preset", "greedy")
    assert unknown.returncode == 1
    assert_one_sentence(unknown.stderr)
    nowhere = price(tmp_path / "good.csv", tmp_path / "no such folder" / "out.csv")
    assert nowhere.returncode == 1, nowhere.stderr
    assert_one_sentence(nowhere.stderr)
    absent = price(tmp_path / "absent.csv", tmp_path / "out.csv")
    assert absent.returncode == 2
    assert "absent.csv" in absent.stderr


@pytest.mark.night
def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(GOOD)
    (tmp_path / "same.csv").symlink_to(tmp_path / "good.csv")
    rules = CliRunner().invoke(
        program, ["price", "rules", "--preset", "premium", "--out", str(tmp_path / "rules.json")]
    )
    assert rules.exit_code == 0
    before = (tmp_path / "rules.json").read_bytes()
    for out in ("good.csv", "same.csv", "rules.json"):
        ran = price(tmp_path / "good.csv", tmp_path / out, "--rules", str(tmp_path / "rules.json"))
        assert ran.returncode == 1
        assert_one_sentence(ran.stderr)
        assert out in ran.stderr
    assert ((tmp_path / "good.csv").read_bytes(), (tmp_path / "rules.json").read_bytes()) == (
        GOOD,
        before,
    )


@pytest.mark.night
def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(GOOD)
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert price(tmp_path / "good.csv", tmp_path / "pipe").returncode == 0
        assert price(tmp_path / "good.csv", tmp_path / "out.csv").returncode == 0
        assert os.read(reading, 65_536) == (tmp_path / "out.csv").read_bytes()
    finally:
        os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.night
def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_bytes(GOOD)
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to("real.csv")
    assert price(tmp_path / "good.csv", tmp_path / "link.csv").returncode == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes()


def assert_one_sentence(text: str) -> None:
    assert "Traceback" not in text
    assert len(text.strip().splitlines()) == 1, text
    assert text.startswith("Error: ")

"""The commands that bring a server a file with a seller's key: `cardsync buy` and `cardsync lots`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from builders import a_csv, a_row
from cardsync.cli import program

if TYPE_CHECKING:
    from click.testing import Result
    from tests.system.processes import Seller, Server

LOTS = "TCGplayer Id,Quantity,Cost\n1,2,1.50\nx,1,1.00\n"
PAYMENTS = "Order Number,Fees\nA-1,0.55\n,1.00\n"


@pytest.fixture(scope="module")
def seller(server: Server) -> Seller:
    made = server.seller()
    made.finished(made.upload(a_csv(a_row(1, market="4.00", price="5.00"))))
    return made


@pytest.fixture
def brought(seller: Seller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CARDSYNC_API_KEY", seller.api_key)

    def bring(command: str, text: str, *options: str) -> Result:
        (tmp_path / "a.csv").write_text(text)
        server = ("--server", seller.server.url)
        return CliRunner().invoke(program, [command, str(tmp_path / "a.csv"), *server, *options])

    return bring


def test_lots_come_once_and_rows_that_were_left_out_are_named(brought) -> None:
    first = brought("lots", LOTS)
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines() == [
        "lots added: 1, rows not read: 1",
        "  line 3, marketplace_id: 'x' is not a whole number from 1 to 9,223,372,036,854,775,807",
    ]
    again = brought("lots", LOTS)
    assert again.stdout.splitlines()[0] == "the same file was here before: nothing was added"
    report = json.loads(brought("lots", LOTS, "--json").stdout)
    assert report["known_before"]


def test_a_payments_report(brought) -> None:
    ran = brought("lots", PAYMENTS, "--payments")
    assert ran.stdout.splitlines() == [
        "orders with fees: 1, new or changed: 1",
        "  line 3, order_number: it is missing",
    ]


def test_a_collection_is_priced(brought) -> None:
    ran = brought("buy", a_csv(a_row(1, market="4.00", price="5.00", quantity=3)).decode())
    assert ran.exit_code == 0, ran.output
    first, rows, *_, last = ran.stdout.splitlines()
    assert first.startswith("collection ")
    # The server's catalog is empty, so the card waits for a choice.
    assert rows == "1 rows, 3 cards; 0 rows matched, 1 wait for a choice, 0 not read"
    assert last == "0 cards bought: $0.00 in cash or $0.00 in credit"


@pytest.mark.parametrize("command", ["buy", "lots"])
def test_refusals_are_one_sentence(brought, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    ran = brought(command, LOTS, "--server", "http://127.0.0.1:9")
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1)
    assert "http://127.0.0.1:9 cannot be asked" in ran.stderr
    monkeypatch.setenv("CARDSYNC_API_KEY", "cs_1_wrong")
    assert "the server answered 401" in brought(command, LOTS).stderr
    monkeypatch.delenv("CARDSYNC_API_KEY")
    assert "CARDSYNC_API_KEY" in brought(command, LOTS).stderr

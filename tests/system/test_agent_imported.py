"""The seller imports into the marketplace by hand and reports it by `cardsync-agent imported`; the
server is the real one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Seller, Server, until

HEAD = "TCGplayer Id,TCG Marketplace Price\n"


def imported(
    seller: Seller, file: Path, *options: str, key: str | None = None
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "cardsync_agent",
        "imported",
        str(file),
        "--server",
        seller.server.url,
    ]
    command += ["--key", key or seller.api_key, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def cycle(seller: Seller, folder: Path) -> Path:
    """One sync of the inventory; the price file that came down."""
    command = [
        sys.executable,
        "-m",
        "cardsync_agent",
        "run",
        "--once",
        "--request",
        "pricing",
        "--folder",
        str(folder),
    ]
    command += ["--server", seller.server.url, "--key", seller.api_key]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return max((folder / "exports").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def left(seller: Seller) -> str | None:
    return seller.get("/api/v1/export/price-updates").headers.get("X-Price-Export-Empty-Reason")


def test_prices_go_up_and_back_and_the_server_hears_of_both(server: Server, tmp_path: Path) -> None:
    seller, folder = server.seller(), tmp_path / "shop"
    (folder / "inbox").mkdir(parents=True)
    (folder / "inbox" / "export.csv").write_bytes(inventory(60))
    up = cycle(seller, folder)

    told = imported(seller, up)
    assert told.returncode == 0, told.stderr
    assert "prices were imported" in told.stdout
    # Beside another holder of the lease the job moves the prices.
    until(
        lambda: left(seller) == "no_updates",
        lambda: f"nothing to be left to import: {left(seller)}",
    )
    [run] = seller.sql("SELECT id FROM price_run WHERE seller_id = %(seller)s")

    answer = httpx.post(
        f"{server.url}/api/pricing/rollbacks",
        json={"run_id": run["id"]},
        headers={"Authorization": f"Bearer {seller.api_key}"},
        timeout=60,
    )
    assert answer.status_code == 201, answer.text
    address = f"/api/pricing/rollbacks/{answer.json()['id']}"

    def state() -> str:
        return str(seller.get(address).json()["state"])

    until(lambda: state() == "ready", lambda: f"the rollback is {state()}")
    back = tmp_path / "back.csv"
    back.write_bytes(seller.get("/api/v1/export/price-updates").content)
    refused = imported(seller, back, "--failed", "the site was down")
    assert (refused.returncode, state()) == (0, "failed")
    assert "nothing has changed" in refused.stdout
    # It was imported after all, at the second try.
    assert imported(seller, back).returncode == 0
    until(lambda: state() == "applied", lambda: f"the rollback is {state()}")
    again = imported(seller, back)
    assert (again.returncode, state()) == (0, "applied")


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read"),
        ("a,b\n1,2\n", "is no price file: it has no column 'TCGplayer Id'"),
        (HEAD + "1,0.10\nx,0.10\n", "line 3: 'x' is no TCGplayer Id"),
        (HEAD + "1\n", "line 2: the line ends before 'TCG Marketplace Price'"),
        (HEAD + "\n", None),
    ],
)
def test_a_file_that_is_none_is_told_in_one_sentence(
    server: Server, tmp_path: Path, content: str | None, sentence: str | None
) -> None:
    file = tmp_path / "prices.csv"
    if content is not None:
        file.write_text(content)
    told = imported(server.seller(), file)
    assert told.returncode == (0 if sentence is None else 2)
    assert (sentence or "") in told.stderr
    assert told.stderr.count("\n") == (0 if sentence is None else 1)


@pytest.mark.night
def test_a_refused_key_is_told_in_one_sentence(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(HEAD + "1,0.10\n")
    told = imported(server.seller(), file, key="csk_" + "x" * 38)
    assert (told.returncode, "the server did not take the report" in told.stdout) == (1, True)

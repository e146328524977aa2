"""A new shop with the real server: set up by options, looked at by `doctor`, and run."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.agent_commands import Person, until
from tests.contract.agent_process import Agents
from tests.system.browser_shops import browser_shop, browsers_of
from tests.system.inventories import inventory
from tests.system.processes import Server
from tests.system.workflow_runner import chromium


@pytest.fixture
def person(tmp_path: Path, agents: Agents) -> Person:
    return Person(tmp_path / "home", agents)


def test_a_shop_is_set_up_and_syncs(person: Person, server: Server, tmp_path: Path) -> None:
    seller = server.seller(sync_mode="full")
    folder, key = tmp_path / "cards", tmp_path / "key"
    (folder / "inbox").mkdir(parents=True)
    export = folder / "inbox" / "export.csv"
    export.write_bytes(inventory(60))
    os.utime(export, (time.time() - 3600,) * 2)
    key.write_text(seller.api_key)
    key.chmod(0o600)
    shop = ["--server", server.url, "--key-file", str(key), "--folder", str(folder)]
    said = person.runs("setup", "--yes", "--adapter", "folder", *shop)
    assert said.code == 0, said.err
    assert "Found 60 cards of your inventory." in said.out
    assert not (folder / "outbox").exists()
    assert [upload["state"] for upload in seller.sql(
        "SELECT state FROM upload WHERE seller_id = %(seller)s"
    )] == ["done"]  # fmt: skip
    doctor = person.runs("doctor")
    assert (doctor.code, doctor.err) == (0, "")
    assert "ok    key          the server accepts it" in doctor.out
    assert "ok    clock" in doctor.out
    assert person.runs("pause", "on").code == 0
    assert "paused until you say so" in person.runs("run", "--once").out
    person.runs("resume")
    with person.keeps_running("run", INTERVAL="0.5") as agent:
        status = until(lambda: _waiting(person), agent.said)
        assert "the server answered" in status
        assert agent.stop() == 0
    assert seller.api_key not in "".join(
        path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
    )


@pytest.mark.night
@pytest.mark.skipif(chromium is None, reason="there is no browser")
def test_a_shop_whose_agent_drives_a_browser_is_set_up(
    person: Person, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings, the sign-in in the agent's own browser, and a first run that changes nothing."""
    seller = server.seller(sync_mode="full")
    folder, key, elsewhere = tmp_path / "cards", tmp_path / "key", tmp_path / "set up"
    key.write_text(seller.api_key)
    key.chmod(0o600)
    options = ["--server", server.url, "--key-file", str(key), "--folder", str(folder)]
    with browser_shop(seller, elsewhere, rows=30, orders=4) as shop:
        # The browser's profile is in the shop's folder, where the person is signed in already.
        signed_in = replace(shop, folder=folder)
        signed_in.sign_in()
        for name, value in signed_in.env(CARDSYNC_AGENT_PACKS=str(elsewhere / "packs")).items():
            if name.startswith("CARDSYNC_AGENT_") and "_PACE_" not in name:
                monkeypatch.setenv(name, value)
        person.keeps = ("CARDSYNC_AGENT_",)
        try:
            said = person.runs("setup", "--yes", "--adapter", "browser", *options)
            assert said.code == 0, said.out + said.err
            assert "Sign in to your marketplace in the browser window that opens." in said.out
            assert "Found 30 cards of your inventory." in said.out
            assert "Nothing was changed at your marketplace." in said.out
            assert shop.state()["imports"] == []
            settings = person.config.read_text()
            assert 'adapter = "browser"' in settings
            assert 'marketplace = "simulated"' in settings
            doctor = person.runs("doctor")
            assert "ok    pack" in doctor.out, doctor.out
        finally:
            for process in browsers_of(folder):
                os.kill(process, signal.SIGKILL)


def _waiting(person: Person) -> str | None:
    said = person.runs("status").out
    return said if "waiting: " in said else None

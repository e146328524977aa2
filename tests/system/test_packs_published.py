"""A workflow pack from the operator's command to the sync app's folder, and its withdrawal: the real
server, the agent's own client, nothing between them but HTTP.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.system.processes import Server

from cardsync_agent.client import Client
from cardsync_agent.events import Reporter
from cardsync_agent.signed_release import read_key
from cardsync_agent.workflow.pack_folder import NoPack, PackFolder
from packs_builder import ORIGIN, a_pack

MARKET = "published_market"
# As docs/releases.md advises.
FIRST, SECOND = 20261127, 20261128


@pytest.mark.day
def test_what_the_operator_publishes_the_agent_verifies_and_uses_until_it_is_killed(
    server: Server, tmp_path: Path
) -> None:
    def admin(*command: object) -> str:
        ran = server.run("admin", *map(str, command))
        assert ran.code == 0, ran.err
        return ran.out

    key = json.loads(admin("release", "keygen", "--out", tmp_path / "keys", "--json"))
    client = Client(server.url, server.admin_seller().api_key)
    folder = PackFolder(
        tmp_path / "home",
        [read_key(key["public_key"])],
        Reporter(sys.stdout),
        origins={MARKET: [ORIGIN]},
    )

    def publish(version: int) -> None:
        file = tmp_path / "pack.json"
        file.write_text(json.dumps(a_pack(version, marketplace=MARKET)))
        admin("workflow", "publish", file, "--key-file", key["key_file"])

    assert folder.fetch(client, MARKET, "en") is None
    publish(FIRST)
    fetched = folder.fetch(client, MARKET, "en")
    assert fetched == folder.in_use(MARKET, "en")
    admin("workflow", "kill", MARKET, "en", FIRST)
    assert folder.fetch(client, MARKET, "en") is None
    with pytest.raises(NoPack, match=f"pack {FIRST} was withdrawn; waiting for a newer one"):
        folder.in_use(MARKET, "en")
    publish(SECOND)
    folder.fetch(client, MARKET, "en")
    assert folder.in_use(MARKET, "en").version == SECOND
    client.close()

"""A release from the operator's command to the seller's folder: the real server, the real agent,
nothing between them but HTTP.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.contract.agent_process import Agents
from tests.system.processes import Server, a_folder, until

from cardsync_agent import __version__
from cardsync_agent.loop import PLATFORM


@pytest.mark.day
@pytest.mark.night
def test_what_the_operator_publishes_the_agent_verifies_and_hands_over(
    agents: Agents, tmp_path: Path
) -> None:
    with a_folder() as folder, Server(folder, WEB_WORKERS="2") as server:
        seller, build = server.admin_seller(), tmp_path / "cardsync_agent-9.0-py3-none-any.whl"
        build.write_bytes(os.urandom(700_000))

        def release(*command: object) -> str:
            ran = server.run("admin", "release", *map(str, command))
            assert ran.code == 0, ran.err
            return ran.out

        key = json.loads(release("keygen", "--out", tmp_path / "keys", "--json"))
        of_agent = ("--product", "agent")
        signed = ("--platform", PLATFORM, "--key-file", key["key_file"])
        release("publish", build, *of_agent, "--version", "9.0", *signed)
        shop = tmp_path / "shop"
        arguments = (
            "--server",
            server.url,
            "--key",
            seller.api_key,
            "--folder",
            str(shop),
            "--once",
        )
        pinned = ("--release-public-key", key["public_key"])
        # The processes hear of it within about a second.
        ready = until(lambda: agents.run(*arguments, *pinned).named("update_ready"), "the update")
        [handed] = Path(ready[0]["path"]).glob("*.whl")
        assert (handed.name, handed.read_bytes()) == (build.name, build.read_bytes())
        release("kill", __version__, *of_agent)
        until(lambda: agents.run(*arguments, *pinned).named("update_required"), "the kill")

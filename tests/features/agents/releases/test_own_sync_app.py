"""The sync app that an installation offers: a wheel that pip takes, of this version."""

import io
import subprocess
import sys
import zipfile

from cardsync import __version__
from cardsync.agents.releases.own_sync_app import address, packed


async def test_the_address_of_the_commands_has_the_wheel(service):
    async with service.client() as stranger:
        path = address("")
        answer = await stranger.get(path)
        assert answer.status_code == 200
        assert answer.content == packed().content
        other = await stranger.get(path.replace(__version__, "0.0.1"))
        assert other.status_code == 404
        assert packed().name in other.text


def test_pip_installs_it_with_its_packs_and_its_command(tmp_path):
    """What this alone would find: metadata, a record or a script that pip refuses."""
    wheel = tmp_path / packed().name
    wheel.write_bytes(packed().content)
    place = tmp_path / "there"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target",
         str(place), str(wheel)],
        check=True, timeout=60,
    )  # fmt: skip
    code = "from cardsync_agent.workflow.pack_folder import packs_of_program as p; import os; print(sorted(os.listdir(p()))); import cardsync_agent.version as v; print(v.__version__, v.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env={"PYTHONPATH": str(place)},
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert "tcgplayer" in told[0]
    assert told[1] == f"{__version__} {place}/cardsync_agent/version.py"
    assert (place / "bin" / "cardsync-agent").exists()


def test_the_same_app_has_the_same_bytes():
    packed.cache_clear()
    first = packed()
    packed.cache_clear()
    assert packed() == first
    assert zipfile.ZipFile(io.BytesIO(first.content)).testzip() is None

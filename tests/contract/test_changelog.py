"""CHANGELOG.md and changes/: what changed since the last release has a line for people."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from cardsync import __version__
from cardsync_agent import __version__ as agent_version

TOP = Path(__file__).parents[2]
FRAGMENTS = sorted((TOP / "changes").glob("*.md"))
SETTINGS = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["towncrier"]
RELEASES = re.findall(
    r"^## (\d+\.\d+\.\d+) ", (TOP / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a checkout")
    return done.stdout


def test_a_change_since_the_last_release_has_a_line():
    git("rev-parse", "HEAD")
    tags = git("tag", "--list", "v*", "--sort=-v:refname").split()
    since = [f"{tags[0]}..HEAD"] if tags else []
    changed = git("log", "--format=%h", "-1", *since, "--", "src", "agent/src")
    assert not changed or FRAGMENTS or __version__ in RELEASES, "write a file in changes/"


@pytest.mark.parametrize("file", FRAGMENTS, ids=lambda file: file.name)
def test_a_line_is_a_sentence_of_a_known_kind(file):
    kinds = {one["directory"] for one in SETTINGS["type"]}
    assert re.fullmatch(r"(\+[a-z0-9-]+|\d+)\.([a-z]+)\.md", file.name)
    assert file.name.split(".")[1] in kinds
    assert re.fullmatch(r"[A-Z][^\n]*\.\n", file.read_text("utf-8"))


def test_server_and_sync_app_have_one_version():
    assert __version__ == agent_version
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", __version__)
    assert (TOP / "src/cardsync/platform/version.py").is_symlink()

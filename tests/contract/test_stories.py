"""Every capability has a story that CI runs against a stock server (tests/schedule.py)."""

from schedule import FILES, STORIES, TESTS


def test_every_capability_has_its_story():
    folders = {file.parent.name for file in (TESTS / "features").rglob("test_*.py")}
    assert folders == set(STORIES)
    assert all(file.is_file() for file in FILES)

"""Each command of ours that the documentation names exists, with its options."""

import pytest

from docs_commands import DOCS, fault_of, mentions

PAGES = sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "agent/README.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page):
    faults = {command: fault_of(command) for command in mentions(page)}
    assert {command: fault for command, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("cardsync serv", "no command serv"),
        ("cardsync admin seller forget 1", "no command forget"),
        ("cardsync serve --bowser", "no option --bowser"),
        ("cardsync-agent fly", "no command fly"),
        ("cardsync admin seller create --name A --json", None),
    ],
)
def test_a_command_that_does_not_exist_is_found(command, fault):
    assert fault_of(command) == fault

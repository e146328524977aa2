"""The agent's settings file: what it may say, the sentences for its mistakes, and how `setup` writes
one shop into it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent.commands.draft import Draft, own_key_file, table_of
from cardsync_agent.shops.own_command import own_command
from cardsync_agent.shops.places import settings_path
from cardsync_agent.shops.settings_file import key_of, settings_of
from cardsync_agent.shops.settings_text import with_shop
from cardsync_agent.usage import UsageProblem

PATH = Path("/home/kim/.config/cardsync-agent/agent.toml")
SHOP = 'server = "https://cards.example/"\nfolder = "shop"\n'
WHOLE = """
release_public_keys = ["abc"]
update_command = "install"

[shop.cards]
server = "https://cards.example/"
key_file = "cards.key"
folder = "/srv/cards"
quiet_hours = "22:00-07:00"

[shop."Blue Dragon"]
server = "http://127.0.0.1:8000"
key = "csk_abc"
folder = "dragon"
adapter = "browser"
quiet_hours = ["22:00-06:30", "12:00-13:00"]

[shop."Blue Dragon".browser]
marketplace = "simulated"
locale = "de-DE"
path = "/opt/chrome"

[shop."Blue Dragon".pace]
interval = 60
"""

IN_ONE_PROFILE = """
[shop.{0}]
server = "https://cards.example/"
folder = "{0}"
adapter = "browser"
browser = {{ marketplace = "simulated", profile = "/srv/profile" }}
"""


def test_a_whole_file() -> None:
    settings = settings_of(WHOLE, PATH)
    cards, dragon = settings.shops
    assert settings.release_public_keys == ("abc",)
    assert settings.update_command == "install"
    assert (cards.server, cards.folder) == ("https://cards.example", Path("/srv/cards"))
    assert cards.key_file == PATH.parent / "cards.key"
    assert (cards.adapter, cards.browser) == ("folder", None)
    assert [str(span) for span in cards.quiet] == ["22:00-07:00"]
    assert dragon.folder == PATH.parent / "dragon"
    assert dragon.browser is not None
    assert dragon.browser.path == Path("/opt/chrome")
    assert dragon.browser.profile == dragon.folder / ".cardsync-agent" / "browser"
    assert dict(dragon.pace) == {"interval": 60.0}
    assert "csk_abc" not in repr(settings)
    assert key_of(dragon, {}) == "csk_abc"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no shop"),
        ("[shop.cards", "is no TOML"),
        ("[shop.cards]\nfolder = 'x'\n", "missing required field `server`"),
        (f"[shop.cards]\n{SHOP}colour = 1\n", "unknown field `colour`"),
        (f"[shop.cards]\n{SHOP}adapter = 'carrier pigeon'\n", "carrier pigeon"),
        (f"[shop.cards]\n{SHOP}adapter = 'browser'\n", "needs a table [shop.cards.browser]"),
        (f"[shop.cards]\n{SHOP}quiet_hours = '22-7'\n", "written like 22:00-07:00"),
        (f"[shop.cards]\n{SHOP}quiet_hours = '25:00-07:00'\n", "written like 22:00-07:00"),
        (f"[shop.cards]\n{SHOP}pace = {{ speed = 3 }}\n", "pace has no speed"),
        (f"[shop.cards]\n{SHOP}pace = {{ interval = 0 }}\n", "pace has no interval of 0"),
        ("[shop.cards]\nserver = 'cards'\nfolder = 'x'\n", "server of shop 'cards' of"),
        (f"[shop.' ']\n{SHOP}", "a shop's name has 1 to 60"),
        (f"[shop.a]\n{SHOP}[shop.b]\n{SHOP}", "need a folder each"),
        ("".join(IN_ONE_PROFILE.format(name) for name in "ab"), "need a profile each"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageProblem) as raised:
        settings_of(text, PATH)
    assert words in str(raised.value)
    assert "agent.toml" in str(raised.value) or "name" in str(raised.value)


@pytest.mark.parametrize(
    ("platform", "environ", "place"),
    [
        ("linux", {}, "/home/kim/.config/cardsync-agent/agent.toml"),
        ("linux", {"XDG_CONFIG_HOME": "/etc/kim"}, "/etc/kim/cardsync-agent/agent.toml"),
        ("darwin", {}, "/home/kim/Library/Application Support/cardsync-agent/agent.toml"),
        ("win32", {"APPDATA": "/data"}, "/data/cardsync-agent/agent.toml"),
        ("linux", {"CARDSYNC_AGENT_CONFIG": "/x.toml"}, "/x.toml"),
    ],
)
def test_the_place_of_the_settings(platform: str, environ: dict[str, str], place: str) -> None:
    assert settings_path(platform, environ, Path("/home/kim")) == Path(place)


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({}, ["/v/python", "-m", "cardsync_agent"]),
        ({"PEX": "/opt/agent.pex"}, ["/v/python", "/opt/agent.pex"]),
        ({"PEX": "/cache/agent.pex", "SCIE": "/opt/agent"}, ["/opt/agent"]),
    ],
)
def test_the_command_that_starts_the_agent_again(
    environ: dict[str, str], command: list[str]
) -> None:
    assert own_command(environ, "/v/python") == command


# Writing

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
VALUES = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), st.data())
def test_a_shop_replaces_its_earlier_table_and_no_other(
    shops: dict[str, str], data: st.DataObject
) -> None:
    text = ""
    for name, value in shops.items():
        text = with_shop(text, name, {"server": value, "pace": {"interval": 3.5}})
    name = data.draw(st.sampled_from(sorted(shops)))
    again = with_shop(text, name, {"server": "new", "hours": ["a", '"']})
    read = tomllib.loads(again)["shop"]
    assert read.pop(name) == {"server": "new", "hours": ["a", '"']}
    before = tomllib.loads(text)["shop"]
    del before[name]
    assert read == before


def test_what_a_person_wrote_beside_a_shop_stays() -> None:
    text = (
        f"# mine\nupdate_command = 'x'\n\n[shop.a] # first\n{SHOP}\n# the other\n[shop.b]\n{SHOP}"
    )
    changed = with_shop(text, "a", {"server": "https://new.example"})
    assert changed.startswith("# mine\nupdate_command = 'x'\n")
    assert "# the other\n[shop.b]" in changed
    assert "# first" not in changed
    assert tomllib.loads(changed)["shop"]["b"] == tomllib.loads(text)["shop"]["b"]


def test_the_answers_become_settings_again() -> None:
    draft = Draft(
        name="Blue & Dragon",
        server="https://cards.example",
        folder=Path("/srv/dragon"),
        key_file=own_key_file("Blue & Dragon", PATH),
        key="csk_secret",
        adapter="browser",
        marketplace="simulated",
        locale="en-US",
        quiet=["22:00-07:00"],
        pace={"interval": 60.0},
    )
    text = with_shop("", draft.name, table_of(draft, PATH.parent))
    assert "csk_secret" not in text + repr(draft)
    [shop] = settings_of(text, PATH).shops
    assert shop.key_file == PATH.parent / "Blue-Dragon.key"
    assert (shop.name, shop.folder, shop.adapter) == (draft.name, draft.folder, "browser")
    assert shop.browser is not None
    assert shop.browser.marketplace == "simulated"
    assert [str(span) for span in shop.quiet] == draft.quiet

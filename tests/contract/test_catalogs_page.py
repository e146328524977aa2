"""docs/catalogs.md shows each declared source of catalogs, and its figures are those of the code."""

from __future__ import annotations

from pathlib import Path

from cardsync.catalog import install_catalog, install_state, source_files
from cardsync.catalog.sources.declared import SOURCES, Source, of_game
from cardsync.platform.settings import Settings

PAGE = Path("docs/catalogs.md")


def games(source: Source) -> str:
    """The games, those first whose first source this is."""
    first = [game for game in source.games if of_game(game)[0] is source]
    others = [game for game in source.games if game not in first]
    return ", ".join([*(f"**{game}**" for game in first), *others])


def printed() -> list[str]:
    return [
        f"| `{one.name}` | [{one.label}]({one.home}) | {games(one)} | {one.licence}"
        f" | {one.lacks or 'nothing that we know'}"
        f" | {one.by_hand or 'by itself'} |"
        for one in SOURCES
    ]


def test_the_page_shows_the_declarations() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert rows[1:] == printed(), "\n".join(printed())


def test_the_page_has_the_figures_of_the_code() -> None:
    page = " ".join(PAGE.read_text().split())
    assert f"within the last {source_files.ONCE.total_seconds() / 3600:.0f} hours" in page
    assert f"at least {install_catalog.KEPT_LEAST:.0%}".replace("%", " %") in page
    assert round(1 / install_catalog.BROKEN_MOST) == 10
    assert [pause.total_seconds() / 60 for pause in install_state.PAUSES] == [10, 60, 360, 1440]
    assert install_state.HOLD_SECONDS == 60
    days = Settings.model_fields["catalog_renewal_days"].default
    assert f"`CARDSYNC_CATALOG_RENEWAL_DAYS` ({days}; 0: never)" in page


def test_a_game_can_be_installed_from_its_first_source() -> None:
    every = {game for source in SOURCES for game in source.games}
    assert all(of_game(game)[0].downloads for game in every)

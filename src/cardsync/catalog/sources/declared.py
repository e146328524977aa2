"""Declares the sources of catalogs: their publisher, license, games, addresses and readers. The
first source of a game is its default source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from cardsync.catalog.product_lines import CATEGORY_IDS
from cardsync.catalog.sources import (
    cardmarket,
    cardtrader,
    flesh_and_blood,
    lorcanajson,
    mtgjson,
    optcg,
    pokemon_tcg_data,
    scryfall,
    tcgcsv,
    tcgdex,
    ygoprodeck,
)
from cardsync.catalog.sources.source_record import Found


class Download(NamedTuple):
    """A file of a source. `{game}` in `address` and `file` is replaced by the source's name of the
    game (`Source.games`).

    If `at` is set, the address returns a JSON object, whose field `at` is the address of the file.
    If `each` is set, the file is a list (CSV or JSON), and each of its items has its own file. A
    `{field}` in the address or name of `each` is replaced by that field of the item.
    """

    address: str
    file: str
    at: str = ""
    each: Download | None = None


class Source(NamedTuple):
    """A project that publishes a catalog. `name` is the name of its format and of its catalogs.

    `games` maps our names of games to the source's names. `lacks` describes for people the data
    that the source lacks. `signs` are words by which the beginning of a file of this source is
    recognized. Without `downloads`, a person must download the file, as `by_hand` explains. With
    `ids_alone`, the files only add ids to products of other sources.
    """

    name: str
    label: str
    home: str
    licence: str
    games: Mapping[str, str]
    read: Callable[[Path, str | None], Found]
    lacks: str = ""
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    signs: tuple[bytes, ...] = ()
    ids_alone: bool = False


_FAB: Final = (
    "https://raw.githubusercontent.com/the-fab-cube/flesh-and-blood-cards/develop/json/english"
)
_OPTCG: Final = "https://optcgapi.com/api"
_POKEMON_DATA: Final = "https://raw.githubusercontent.com/PokemonTCG/pokemon-tcg-data/master"
SOURCES: Final = (
    Source(
        "scryfall",
        "Scryfall",
        "https://scryfall.com/docs/api/bulk-data",
        "Wizards of the Coast's Fan Content Policy; free to use, not to be resold",
        {"magic": "magic"},
        scryfall.read,
        lacks="sealed products",
        downloads=(
            Download(
                "https://api.scryfall.com/bulk-data/default-cards",
                "default-cards.json",
                at="download_uri",
            ),
        ),
        signs=(b'"tcgplayer_id"', b'"collector_number"'),
    ),
    Source(
        "mtgjson",
        "MTGJSON",
        "https://mtgjson.com",
        "MIT",
        {"magic": "magic"},
        mtgjson.read,
        downloads=(
            Download("https://mtgjson.com/api/v5/AllPrintings.json.xz", "AllPrintings.json.xz"),
        ),
        signs=(b'"mtgoCode"', b'"keyruneCode"', b'"baseSetSize"'),
    ),
    Source(
        "tcgcsv",
        "TCGCSV",
        "https://tcgcsv.com",
        "TCGplayer's own data; use it only with TCGplayer",
        {game: str(category) for game, category in CATEGORY_IDS.items()},
        tcgcsv.read,
        lacks="pictures and other languages",
        downloads=(
            Download(
                "https://tcgcsv.com/tcgplayer/{game}/Groups.csv",
                "Groups.csv",
                each=Download(
                    "https://tcgcsv.com/tcgplayer/{game}/{groupId}/ProductsAndPrices.csv",
                    "{groupId}.csv",
                ),
            ),
        ),
    ),
    Source(
        "pokemon-tcg-data",
        "Pokemon TCG Data",
        "https://github.com/PokemonTCG/pokemon-tcg-data",
        "free to use; the project has no license text",
        {"pokemon": "en"},
        pokemon_tcg_data.read,
        lacks="ids of the marketplace, sealed products",
        downloads=(
            Download(
                f"{_POKEMON_DATA}/sets/{{game}}.json",
                "sets/{game}.json",
                each=Download(
                    f"{_POKEMON_DATA}/cards/{{game}}/{{id}}.json", "cards/{game}/{id}.json"
                ),
            ),
        ),
        signs=(b'"supertype"',),
    ),
    Source(
        "tcgdex",
        "TCGdex",
        "https://tcgdex.dev",
        "MIT",
        {"pokemon": "en", "pokemon_japan": "ja"},
        tcgdex.read,
        lacks="rarities and finishes (only a file of single cards has them), sealed products",
        downloads=(
            Download(
                "https://api.tcgdex.net/v2/{game}/sets",
                "sets.json",
                each=Download("https://api.tcgdex.net/v2/{game}/sets/{id}", "{id}.json"),
            ),
        ),
        signs=(b'"localId"',),
    ),
    Source(
        "lorcanajson",
        "LorcanaJSON",
        "https://lorcanajson.org",
        "MIT",
        {"lorcana": "en"},
        lorcanajson.read,
        lacks="sealed products",
        downloads=(
            Download("https://lorcanajson.org/files/current/{game}/allCards.json", "allCards.json"),
        ),
        signs=(b'"hasAllCards"', b'"allowedInTournamentsFromDate"'),
    ),
    Source(
        "flesh-and-blood-cards",
        "Flesh and Blood Cards",
        "https://github.com/the-fab-cube/flesh-and-blood-cards",
        "MIT",
        {"flesh_and_blood": "english"},
        flesh_and_blood.read,
        lacks="languages other than English, sealed products",
        downloads=(
            Download(f"{_FAB}/card.json", "card.json"),
            Download(f"{_FAB}/set.json", "set.json"),
        ),
        signs=(b'"silver_age_legal"', b'"blitz_legal"', b'"set_printing_unique_id"'),
    ),
    Source(
        "ygoprodeck",
        "YGOPRODeck",
        "https://ygoprodeck.com/api-guide/",
        "free to use, its files to be kept and not asked for again and again",
        {"yugioh": "yugioh"},
        ygoprodeck.read,
        lacks="ids of the marketplace, pictures (it forbids links to them), finishes, sealed products",
        downloads=(Download("https://db.ygoprodeck.com/api/v7/cardinfo.php", "cardinfo.json"),),
        signs=(b'"humanReadableCardType"', b'"ygoprodeck_url"', b'"frameType"'),
    ),
    Source(
        "optcg",
        "OPTCG API",
        "https://optcgapi.com",
        "free to use; the project has no license text",
        {"one_piece": "one_piece"},
        optcg.read,
        lacks="ids of the marketplace, finishes, sealed products",
        downloads=(
            Download(f"{_OPTCG}/allSetCards/", "sets.json"),
            Download(f"{_OPTCG}/allSTCards/", "starter_decks.json"),
            Download(f"{_OPTCG}/allPromoCards/", "promos.json"),
        ),
        signs=(b'"card_set_id"',),
    ),
    Source(
        "cardtrader",
        "CardTrader",
        "https://www.cardtrader.com/docs/api/full/reference",
        "CardTrader's terms; for its own sellers",
        {game: str(number) for number, game in cardtrader.GAMES.items()},
        cardtrader.read,
        lacks="finishes",
        by_hand="Get /expansions and /blueprints/export of each expansion with the token of your"
        " CardTrader account, and put the files into one folder.",
        signs=(b'"blueprint_id"', b'"card_market_ids"'),
    ),
    Source(
        "cardmarket",
        "Cardmarket",
        "https://www.cardmarket.com/en/Magic/Data/Product-List",
        "Cardmarket's terms; for its own sellers",
        {game: word for word, game in cardmarket.GAMES.items()},
        cardmarket.read,
        lacks="numbers, finishes, languages and the names of sets: it gives ids to the products of"
        " other catalogs where name and set leave one card",
        by_hand="Get the product list of a game, and the list of expansions of its API, and put both"
        " files into one folder.",
        signs=(b'"idProduct"',),
        ids_alone=True,
    ),
)
BY_NAME: Final = {source.name: source for source in SOURCES}


def of_game(game: str) -> list[Source]:
    """Return the sources of a game, the default one first."""
    return [source for source in SOURCES if game in source.games]

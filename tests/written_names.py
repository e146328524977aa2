"""Names of cards, from the catalogs beside the project and by hand, in the forms in which the
marketplace, catalogs and apps write them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import schedule

CATALOGS = ("magic_xmage", "pokemon_tcgdex_en", "pokemon_japan_tcgdex_ja")
# Names that hold signs and words of the search language.
ODD = [
    "+2 Mace", "_____", "!", "?", "Who/What/When/Where/Why", "B.F.M. (Big Furry Monster)",
    '"Ach! Hans, Run!"', 'Kongming, "Sleeping Dragon"', "R&D's Secret Lair", "1996 World Champion",
    "Or", "And", "Not", "Now or Never", "or else", "-1/-1 Counter", "Wooper -027/092",
    "Circle of Protection: Black", "Number: 39", "Set: Base", "NieR:Automata", "a:b:c", "x=y", "<3",
    "is:foyl", "prise:5", "prise>5", "(", ")", ":)", '7" Figure', "Erase (Not the Urza's Legacy One)",
    "Bolt (", "Bolt [", "Unown [!]", "Nidoran ♀", "Charizard ☆", "Kingdra δ", "Pikachu & Zekrom-GX",
    "Daisy Duck – Pirate Captain", "Fire // Ice", "Trick or Treat // Now or Never", "5..6", "a|b", "\\",
    "100%", "リザードン ex", "Lim-Dûl's Vault", "Æther Vial", "Déjà Vu", "not:foyl", "price: 5", "v:",
    "S:P Little Knight", "I:P Masquerena", "Number C39: Utopia Ray", "R: Reverse", "Rumors of My Death . . .",
]  # fmt: skip


def forms(name: str, number: str) -> Iterator[str]:
    """Yield the name as sources write it."""
    yield name
    yield name.upper()
    yield f"  {name}\n"
    for apostrophe in "’´`′":
        yield name.replace("'", apostrophe)
    for dash in "–—":
        yield name.replace(" - ", f" {dash} ")
    for faces in ("/", " / ", "//"):
        yield name.replace(" // ", faces)
    yield name.replace("é", "e").replace("É", "E")
    yield name.replace('"', "”")
    if number and number[-1].isdigit() and number.isalnum() and number.isascii():
        yield f"{name} - {number}"
        yield f"{name} - {number}/165"
        yield f"{name} ({number}/165)"


def of_catalogs(folder: Path, day: int) -> list[tuple[str, str]]:
    """Return each name with one of its numbers: by day so many, other ones each day; all at night."""
    frames = [pl.read_parquet(folder / "catalog" / f"{name}.parquet") for name in CATALOGS]
    names = pl.concat([frame.select("product_name", "number") for frame in frames])
    distinct = names.group_by("product_name").agg(pl.col("number").min()).sort("product_name")
    rows = [(name, number or "") for name, number in distinct.iter_rows()]
    return random.Random(schedule.DAY).sample(
        rows, min(len(rows), schedule.examples(day, len(rows)))
    )

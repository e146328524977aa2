"""Lists sets whose names in the marketplace, catalogs and apps differ by more than word order,
punctuation and case. `set_names.py` applies the lists after its rules.

  - `A = B = C`: A and B are other names of the set C. C is the name in catalogs; for Pokemon, the
  marketplace's name. - `A > B, C`: a catalog without the set A has its cards in the sets B and C,
  its parts. A card of A is found by name and number in one of them. `2000..2003` stands for four
  names. - Braces after a part describe its numbers: `{p}` is a suffix of the number. `{-}` means
  that a set code or a year precedes the number ("DDG-5" is 5, "2025-10" is 10). `{=}` means that
  sources number the cards differently, and each card has a unique name.
"""

from __future__ import annotations

from typing import Final

_MAGIC: Final = """
Alpha Edition = Alpha = Limited Edition Alpha
Beta Edition = Beta = Limited Edition Beta
Unlimited = 2nd Edition = Unlimited Edition
Revised = 3rd Edition = Third Edition = Revised Edition
4th Edition = Fourth Edition
5th Edition = Fifth Edition
6th Edition = Sixth Edition = Classic Sixth Edition
7th Edition = Seventh Edition
8th Edition = Eighth Edition
9th Edition = Ninth Edition
10th Edition = Tenth Edition
Revised Edition (Foreign Black Border) = Foreign Black Bordered = Foreign Black Border
Fourth Edition: Black Bordered = Fourth Edition Foreign Black Border
Summer Magic = Summer Magic / Edgar
International Edition = International Collectors' Edition = Intl. Collectors' Edition
Ravnica = Ravnica: City of Guilds
Timeshifted = Time Spiral "Timeshifted" = Time Spiral Timeshifted
Coldsnap Theme Deck Reprints = Coldsnap Theme Decks
Deckmasters Garfield vs Finkel = Deckmasters: Garfield vs. Finkel = Deckmasters
Beatdown = Beatdown Box Set
Battle Royale = Battle Royale Box Set
Multiverse Gift Box Cards = Multiverse Gift Box
Portal 2 = Portal Second Age
Magic Modern Event Deck = Modern Event Deck 2014
Planechase 2012 Edition = Planechase 2012
Modern Masters 2015 Edition = Modern Masters 2015
Modern Masters 2017 Edition = Modern Masters 2017
Commander 2013 Edition = Commander 2013
Commander = Commander 2011
Commander: Ikoria = Commander: Ikoria: Lair of Behemoths = Commander 2020
Commander: Strixhaven = Commander: Strixhaven: School of Mages = Commander 2021
Commander Anthology 2018 = Commander Anthology Volume II
Commander: Adventures in the Forgotten Realms = Forgotten Realms Commander
Commander: Innistrad: Crimson Vow = Crimson Vow Commander
Commander: Innistrad: Midnight Hunt = Midnight Hunt Commander
Commander: Kamigawa: Neon Dynasty = Neon Dynasty Commander
Commander: Teenage Mutant Ninja Turtles = Teenage Mutant Ninja Turtles Eternal
Commander: Streets of New Capenna = New Capenna Commander
Commander: The Lord of the Rings: Tales of Middle-earth = Tales of Middle-earth Commander
Warhammer 40,000 = Warhammer 40,000 Commander
Conspiracy 2 = Conspiracy: Take the Crown
Double Feature = Innistrad: Double Feature
Guilds of Ravnica: Guild Kits = Guilds of Ravnica Guild Kit = GRN Guild Kit
Ravnica Allegiance: Guild Kits = Ravnica Allegiance Guild Kit = RNA Guild Kit
Guilds of Ravnica: Mythic Edition = Ravnica Allegiance: Mythic Edition = Mythic Edition
War of the Spark: Mythic Edition = Mythic Edition
Masterpiece Series: Amonkhet Invocations = Amonkhet Invocations
Masterpiece Series: Kaladesh Inventions = Kaladesh Inventions
Masterpiece Series: Expeditions = Battle for Zendikar: Expeditions = Zendikar Expeditions
Zendikar Rising: Expeditions = Zendikar Rising Expeditions
Ultimate Masters: Box Toppers = Ultimate Box Toppers = Ultimate Box Topper
Modern Horizons: Retro Frame Cards = Modern Horizons 1 Timeshifts
March of the Machine: Multiverse Legends = Multiverse Legends
Outlaws of Thunder Junction: Breaking News = Breaking News
Outlaws of Thunder Junction: The Big Score = The Big Score
Strixhaven: Mystical Archives = Strixhaven Mystical Archive
Secrets of Strixhaven: Mystical Archives = Secrets of Strixhaven Mystical Archive
The Brothers' War: Retro Frame Artifacts = The Brothers' War Retro Artifacts
The Brothers' War: Transformers = Transformers
The Lost Caverns of Ixalan: Jurassic World Collection = Jurassic World Collection
Jurassic World = Jurassic World Collection
Jumpstart 2020 = Jumpstart
Jumpstart 2025 = Foundations Jumpstart
Secret Lair Drop Series = Secret Lair Drop
Secret Lair Promo = Secret Lair Showdown
Secret Lair Countdown Kit = Secret Lair 30th Anniversary Countdown Kit = Secret Lair Countdown
SLX Cards = Universes Within
Mystery Booster Cards = Mystery Booster
Mystery Booster: Convention Edition Exclusives = Mystery Booster Playtest Cards 2019
Mystery Booster: Retail Exclusives = Mystery Booster Retail Edition Foils
Un-Known Event Playtest Cards = Unknown Event
APAC Lands = Asia Pacific Land Program
European Lands = Euro Lands = European Land Program
Guru Lands = Guru
Champs Promos = Champs and States
WMCQ Promo Cards = World Magic Cup Qualifiers
Special Occasion = Happy Holidays
Marvel Universe Eternal-Legal = Marvel Universe
Tarkir Dragonfury Promos = Tarkir Dragonfury
Ugin's Fate Promos = Ugin's Fate
Vanguard = Vanguard Series
15th Anniversary = 15th Anniversary Cards

The List Reprints > The List {-}
Duel Decks: Anthology > Duel Decks Anthology: Divine vs. Demonic, \
Duel Decks Anthology: Elves vs. Goblins, Duel Decks Anthology: Garruk vs. Liliana, \
Duel Decks Anthology: Jace vs. Chandra
FNM Promos > Friday Night Magic 2000..2017, Friday Night Magic
Friday Night Magic Promos > Friday Night Magic 2000..2017, Friday Night Magic
Judge Promos > Judge Gift Cards 1998..2029, Judge Gift Program
Judge Rewards Promos > Judge Gift Cards 1998..2029
Arena Promos > Arena League 1996, Arena League 1999..2006, Two-Headed Giant Tournament
Arena League Promos > Arena League 1996, Arena League 1999..2006
Magic Player Rewards > Magic Player Rewards 2001..2011
Player Rewards Promos > Magic Player Rewards 2001..2011
Magic Premiere Shop > Magic Premiere Shop 2005..2011
WPN & Gateway Promos > Wizards Play Network 2008..2029, Gateway 2006..2008, DCI Promos
Gateway Promos > Wizards Play Network 2008..2012, Gateway 2006..2008, DCI Promos
Store Championship Promos > Store Championships
Junior Series Promos > Junior Super Series, Junior Series Europe, Junior APAC Series
JSS/MSS Promos > Junior Super Series, Junior Series Europe, Junior APAC Series
Standard Showdown Promos > BFZ Standard Series, XLN Standard Showdown, M19 Standard Showdown, \
MKM Standard Showdown, FIN Standard Showdown
Gift Boxes and Promos > 2017 Gift Pack, M19 Gift Pack
MagicFest Promos > MagicFest 2019..2029
MagicFest Cards > MagicFest 2019..2029
Love Your LGS Promos > Love Your LGS 2020..2029
Heroes of the Realm > 2016..2029 Heroes of the Realm
Lunar New Year Promos > Year of the Ox 2021, Year of the Tiger 2022, Year of the Rabbit 2023, \
Year of the Dragon 2024, Year of the Snake 2025, Year of the Horse 2026
30th Anniversary Promos > 30th Anniversary Play Promos, 30th Anniversary History Promos, \
30th Anniversary Misc Promos
Hero's Path Promos > Theros Hero's Path, Born of the Gods Hero's Path, \
Journey into Nyx Hero's Path
World Championship Decks > World Championship Decks 1997..2004, Pro Tour Collector Set
Media Promos > Media and Collaboration Promos {-}, 15th Anniversary Cards, \
HarperPrism Book Promos, IDW Comics Inserts, URL/Convention Promos, Dragon Con, \
Marvel Legends Series Inserts
Unique and Miscellaneous Promos > Media and Collaboration Promos {-}, \
San Diego Comic-Con 2013..2019, Magic 2015 Clash Pack, Fate Reforged Clash Pack, \
Magic Origins Clash Pack, URL/Convention Promos, Open the Helvault, \
Duels of the Planeswalkers 2009..2015 Promos, Regional Championship Qualifiers 2022, \
Spotlight Series, Year of the Ox 2021, Year of the Tiger 2022, Year of the Rabbit 2023, \
Year of the Dragon 2024, Year of the Snake 2025, Year of the Horse 2026
"""
# Promos of these sets from a prerelease, launch or box have a star after their number; promos of a
# game day have no star.
_STARRED: Final = (
    "Magic 2010..2014",
    "Zendikar",
    "Worldwake",
    "Rise of the Eldrazi",
    "Scars of Mirrodin",
    "Mirrodin Besieged",
    "New Phyrexia",
    "Innistrad",
    "Dark Ascension",
    "Avacyn Restored",
    "Return to Ravnica",
    "Gatecrash",
    "Dragon's Maze",
    "Theros",
    "Born of the Gods",
    "Journey into Nyx",
)
# Numbers of promos of older sets, and of Magic 2015, may have a star or not.
_EITHER: Final = (
    "Magic 2015",
    "Urza's Saga",
    "Urza's Legacy",
    "Urza's Destiny",
    "Mercadian Masques",
    "Nemesis",
    "Prophecy",
    "Invasion",
    "Planeshift",
    "Apocalypse",
    "Odyssey",
    "Torment",
    "Judgment",
    "Onslaught",
    "Legions",
    "Scourge",
    "Mirrodin",
    "Darksteel",
    "Fifth Dawn",
    "Champions of Kamigawa",
    "Betrayers of Kamigawa",
    "Saviors of Kamigawa",
    "Ravnica: City of Guilds",
    "Guildpact",
    "Dissension",
    "Coldsnap",
    "Time Spiral",
    "Planar Chaos",
    "Future Sight",
    "Tenth Edition",
    "Lorwyn",
    "Morningtide",
    "Shadowmoor",
    "Eventide",
    "Shards of Alara",
    "Conflux",
    "Alara Reborn",
)
_SINCE_KHANS: Final = (
    "Khans of Tarkir",
    "Fate Reforged",
    "Dragons of Tarkir",
    "Magic Origins",
    "Battle for Zendikar",
    "Oath of the Gatewatch",
    "Shadows over Innistrad",
    "Eldritch Moon",
    "Kaladesh",
    "Aether Revolt",
    "Amonkhet",
    "Hour of Devastation",
    "Ixalan",
    "Rivals of Ixalan",
)
_SINCE_DOMINARIA: Final = (
    "Dominaria",
    "Core Set 2019..2021",
    "Guilds of Ravnica",
    "Ravnica Allegiance",
    "War of the Spark",
    "Throne of Eldraine",
    "Theros Beyond Death",
    "Ikoria: Lair of Behemoths",
    "Zendikar Rising",
    "Kaldheim",
    "Strixhaven: School of Mages",
    "Adventures in the Forgotten Realms",
    "Innistrad: Midnight Hunt",
    "Innistrad: Crimson Vow",
    "Kamigawa: Neon Dynasty",
    "Streets of New Capenna",
    "Dominaria United",
    "The Brothers' War",
    "Phyrexia: All Will Be One",
    "March of the Machine",
    "Wilds of Eldraine",
    "The Lost Caverns of Ixalan",
    "Murders at Karlov Manor",
    "Outlaws of Thunder Junction",
    "Bloomburrow",
    "Duskmourn: House of Horror",
    "Foundations",
    "Aetherdrift",
    "Tarkir: Dragonstorm",
    "Final Fantasy",
    "Edge of Eternities",
    "Marvel's Spider-Man",
    "Avatar: The Last Airbender",
    "Lorwyn Eclipsed",
)


def _promos(names: tuple[str, ...], *signs: str) -> str:
    return ", ".join(f"{name} Promos{sign}" for sign in signs for name in names)


_OLD: Final = f"{_promos(_STARRED, ' {*}')}, {_promos(_EITHER, '', ' {*}')}"
_MAGIC_PROMOS: Final = f"""
Prerelease Cards > {_OLD}, {_promos((*_SINCE_KHANS, *_SINCE_DOMINARIA), " {s}")}
Launch Party & Release Event Promos > GRN Ravnica Weekend, RNA Ravnica Weekend, \
Commander 2011 Launch Party, {_OLD}
Game Day & Store Championship Promos > Game Day Promos, Store Championships, \
{_promos((*_STARRED, *_EITHER, *_SINCE_KHANS), "")}
Buy-A-Box Promos > {_OLD}, {_promos(_SINCE_KHANS, "")}, Dominaria, Core Set 2019..2021, \
Guilds of Ravnica, Ravnica Allegiance, War of the Spark, Modern Horizons, Throne of Eldraine, \
Theros Beyond Death, Ikoria: Lair of Behemoths
"""
_POKEMON: Final = """
Base = Base Set
151 = Pokemon 151 = SV: Scarlet & Violet 151
Base Set (1st Edition & Shadowless) = Base Set (Shadowless)
Scarlet & Violet Promo = SV: Scarlet & Violet Promo Cards
Sun & Moon Promo = SM Promos
Sword & Shield Promo = SWSH: Sword & Shield Promo Cards
Best of Game = Best of Promos
Black & White Black Star Promos = BW Black Star Promos = Black and White Promos
BW Trainer Kit (Excadrill) = BW Trainer Kit (Zoroark) = BW Trainer Kit: Excadrill & Zoroark
DP Black Star Promos = Diamond and Pearl Promos
DP Trainer Kit (Manaphy) = DP Training Kit 1 Blue
DP Trainer Kit (Lucario) = DP Training Kit 1 Gold
EX Trainer Kit (Latias) = EX Trainer Kit (Latios) = EX Trainer Kit Latias = \
EX Trainer Kit Latios = EX Trainer Kit 1: Latias & Latios
EX Trainer Kit 2 (Plusle) = EX Trainer Kit 2 (Minun) = EX Trainer Kit 2 Plusle = \
EX Trainer Kit 2 Minun = EX Trainer Kit 2: Plusle & Minun
Expedition Base Set = Expedition
HGSS Black Star Promos = HGSS Promos
HS—Triumphant = Triumphant
HS—Undaunted = Undaunted
HS—Unleashed = Unleashed
HS Trainer Kit (Gyarados) = HS Trainer Kit (Raichu) = HGSS Trainer Kit: Gyarados & Raichu
McDonald's Collection 2021 = McDonald's 25th Anniversary Promos
Mega Evolution Energy = MEE: Mega Evolution Energies
MEP Black Star Promos = Mega Evolution Black Star Promos = ME: Mega Evolution Promo
Nintendo Black Star Promos = Nintendo Promos
Pokémon Rumble = Rumble
Scarlet & Violet = SV01: Scarlet & Violet Base Set
Scarlet & Violet Energy = SVE: Scarlet & Violet Energies
SVP Black Star Promos = Scarlet & Violet Black Star Promos = SV: Scarlet & Violet Promo Cards
SM Black Star Promos = SM Promos
SM Trainer Kit (Lycanroc) = SM Trainer Kit (Alolan Raichu) = \
SM Trainer Kit: Lycanroc & Alolan Raichu
Sun & Moon = SM Base Set
Sword & Shield = SWSH01: Sword & Shield Base Set
SWSH Black Star Promos = SWSH: Sword & Shield Promo Cards
Unseen Forces Unown Collection = EX Unseen Forces
Wizards Black Star Promos = WoTC Promo
XY = XY Base Set
XY Black Star Promos = XY Promos
XY Trainer Kit (Bisharp) = XY Trainer Kit (Wigglytuff) = XY Trainer Kit: Bisharp & Wigglytuff
XY Trainer Kit (Latias) = XY Trainer Kit (Latios) = XY Trainer Kit: Latias & Latios
XY Trainer Kit (Pikachu Libre) = XY Trainer Kit (Suicune) = \
XY Trainer Kit: Pikachu Libre & Suicune
XY Trainer Kit (Sylveon) = XY Trainer Kit (Noivern) = XY Trainer Kit: Sylveon & Noivern
Yellow A Alternate = Alternate Art Promos

SV: Scarlet & Violet Promo Cards > SV01: Scarlet & Violet Base Set
Celebrations: Classic Collection > Celebrations: Classic Collection {=}
Generations: Radiant Collection > Generations
Legendary Treasures: Radiant Collection > Legendary Treasures
DP Trainer Kit: Manaphy & Lucario > DP Training Kit 1 Blue, DP Training Kit 1 Gold
Miscellaneous Cards & Products > Poké Card Creator Pack, Pokémon Futsal 2020, \
Pokémon Futsal Collection, Miscellaneous Promos
"""
_LORCANA: Final = """
Reign of Jafar = The Reign of Jafar
Promo Cards = Disney Lorcana Promo Cards
"""
BY_GAME: Final = {"magic": _MAGIC + _MAGIC_PROMOS, "pokemon": _POKEMON, "lorcana": _LORCANA}

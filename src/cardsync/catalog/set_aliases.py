"""Lists sets that the marketplace, catalogs and apps name differently by more than their words'
order, punctuation and case. `set_names.py` reads the lists, after its rules.

A line `A = B = C` says that A and B are the set C, as catalogs name it (Pokemon: the marketplace).
A line `A > B, C` says that the cards of A are in B and C of a catalog that has no set A: such a
card is found by its name and its number in one of them. `2000..2003` stands for four names. A word
in braces says how the numbers of the parts differ: `{p}` is behind the number, `{-}` says that a
set's code or a year is in front of it ("DDG-5" and "2025-10" are 5 and 10).
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
Game Day & Store Championship Promos > Game Day Promos, Store Championships
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
Launch Party & Release Event Promos > GRN Ravnica Weekend, RNA Ravnica Weekend, \
Commander 2011 Launch Party
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
Prerelease Cards > Khans of Tarkir Promos {s}, Fate Reforged Promos {s}, \
Dragons of Tarkir Promos {s}, Magic Origins Promos {s}, Battle for Zendikar Promos {s}, \
Oath of the Gatewatch Promos {s}, Shadows over Innistrad Promos {s}, Eldritch Moon Promos {s}, \
Kaladesh Promos {s}, Aether Revolt Promos {s}, Amonkhet Promos {s}, \
Hour of Devastation Promos {s}, Ixalan Promos {s}, Rivals of Ixalan Promos {s}, \
Dominaria Promos {s}, Core Set 2019..2021 Promos {s}, Guilds of Ravnica Promos {s}, \
Ravnica Allegiance Promos {s}, War of the Spark Promos {s}, Throne of Eldraine Promos {s}, \
Theros Beyond Death Promos {s}, Ikoria: Lair of Behemoths Promos {s}, \
Zendikar Rising Promos {s}, Kaldheim Promos {s}, Strixhaven: School of Mages Promos {s}, \
Adventures in the Forgotten Realms Promos {s}, Innistrad: Midnight Hunt Promos {s}, \
Innistrad: Crimson Vow Promos {s}, Kamigawa: Neon Dynasty Promos {s}, \
Streets of New Capenna Promos {s}, Dominaria United Promos {s}, \
The Brothers' War Promos {s}, Phyrexia: All Will Be One Promos {s}, \
March of the Machine Promos {s}, Wilds of Eldraine Promos {s}, \
The Lost Caverns of Ixalan Promos {s}, Murders at Karlov Manor Promos {s}, \
Outlaws of Thunder Junction Promos {s}, Bloomburrow Promos {s}, \
Duskmourn: House of Horror Promos {s}, Foundations Promos {s}, Aetherdrift Promos {s}, \
Tarkir: Dragonstorm Promos {s}, Final Fantasy Promos {s}, Edge of Eternities Promos {s}, \
Marvel's Spider-Man Promos {s}, Avatar: The Last Airbender Promos {s}, Lorwyn Eclipsed Promos {s}
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
BY_GAME: Final = {"magic": _MAGIC, "pokemon": _POKEMON, "lorcana": _LORCANA}

"""Lists the product lines with their internal names and the marketplace's labels and category ids.
The database has a copy of this reference data.
"""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    name: str
    label: str
    category_id: int


LINES = (
    Line("magic", "Magic", 1),
    Line("yugioh", "YuGiOh", 2),
    Line("pokemon", "Pokemon", 3),
    Line("flesh_and_blood", "Flesh & Blood TCG", 62),
    Line("digimon", "Digimon Card Game", 63),
    Line("one_piece", "One Piece Card Game", 68),
    Line("lorcana", "Lorcana TCG", 71),
    Line("star_wars_unlimited", "Star Wars: Unlimited", 79),
    Line("dragon_ball_fusion_world", "Dragon Ball Super: Fusion World", 80),
    Line("union_arena", "Union Arena", 81),
    Line("pokemon_japan", "Pokemon Japan", 85),
    Line("gundam", "Gundam Card Game", 86),
    Line("riftbound", "Riftbound: League of Legends Trading Card Game", 89),
)
NAMES = tuple(line.name for line in LINES)
CATEGORY_IDS = {line.name: line.category_id for line in LINES}
LABEL_BY_NAME = {line.name: line.label for line in LINES}
# Other labels that the marketplace or sellers' tools have used.
_ALSO = {
    "magic: the gathering": "magic",
    "yu-gi-oh!": "yugioh",
    "yu-gi-oh": "yugioh",
    "flesh & blood": "flesh_and_blood",
    "flesh and blood": "flesh_and_blood",
    "flesh and blood tcg": "flesh_and_blood",
    "digimon": "digimon",
    "one piece": "one_piece",
    "lorcana": "lorcana",
    "disney lorcana": "lorcana",
    "disney lorcana tcg": "lorcana",
    "star wars unlimited": "star_wars_unlimited",
    "gundam": "gundam",
    "riftbound": "riftbound",
    "pokemon tcg": "pokemon",
    "pokémon": "pokemon",
    "pokémon (japan)": "pokemon_japan",
    "pokémon japan": "pokemon_japan",
    "pokemon (japan)": "pokemon_japan",
}
NAME_BY_LABEL = {line.label.casefold(): line.name for line in LINES} | _ALSO

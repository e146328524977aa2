"""The page that shows all components in all states, for developers and tests. It is served only if
DEVELOPMENT_PAGES is on.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.shell import PageRequest, show
from cardsync.platform import clock, errors
from cardsync.platform.settings import Settings
from cardsync.stock.cards.market_trend import trend_of

HOSTILE = (
    "<b>bold</b> & \"quoted\" 'single' \u202eright to left\u202c zero\u200bwidth " + "long" * 60
)
PICTURES = (
    ("magic", "Mythic"),
    ("pokemon", "Rare"),
    ("yugioh", "Uncommon"),
    ("lorcana", "Common"),
    ("flesh_and_blood", "Rare"),
    ("one_piece", "Secret Rare"),
    ("digimon", ""),
)


def _picture(product_line: str, rarity: str) -> dict[str, str]:
    return {
        "product_line": product_line,
        "rarity": rarity,
        "set_name": "Ashes of Veyra",
        "number": "214",
    }


@get("/styleguide")
async def styleguide(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    if not settings.development_pages:
        raise errors.NotFound("the style guide is served in development only")
    now = clock.now()
    ages = [timedelta(seconds=10), timedelta(hours=3), timedelta(days=4), -timedelta(hours=2)]
    points = [
        (clock.rfc3339(now - timedelta(days=day)), {"Price": f"{10 + day % 5}.50", "Market": None})
        for day in range(30)
    ]
    return show(
        request,
        caller,
        "styleguide.html",
        moments=[clock.rfc3339(now - age) for age in ages],
        points=points,
        days=[(moment[:10], {"Listed": values["Price"]}) for moment, values in points],
        hostile=HOSTILE,
        pictures=[_picture(line, rarity) for line, rarity in PICTURES],
        trend=trend_of([(day, Decimal(10 + day % 5)) for day in range(29, -1, -1)]),
    )

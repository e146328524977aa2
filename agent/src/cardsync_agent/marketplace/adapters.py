"""The adapters of this agent, by the name that a shop's settings use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cardsync_agent.events import Reporter
from cardsync_agent.marketplace import Marketplace
from cardsync_agent.marketplace.folder import FolderMarketplace
from cardsync_agent.marketplace.opening import Look, Opening
from cardsync_agent.shops.settings_file import Shop
from cardsync_agent.usage import UsageProblem


@dataclass(frozen=True)
class Adapter:
    """`open` creates the marketplace of a shop. `sign_in` opens the marketplace's sign-in page in
    the agent's own browser and returns when the person is done. `looks` are the adapter's lines of
    `doctor`.
    """

    open: Callable[[Opening], Marketplace]
    sign_in: Callable[[Shop, Reporter], None] | None = None
    looks: Callable[[Shop], list[Look]] = lambda shop: []
    # The supported marketplaces, for `setup` to choose from.
    marketplaces: Callable[[], list[str]] = list


def _open_folder(opening: Opening) -> Marketplace:
    return FolderMarketplace(opening.shop.folder, opening.pace.settle, opening.stop.sleep)


# Only a shop with a browser loads the modules that drive it.
def _open_browser(opening: Opening) -> Marketplace:
    from cardsync_agent.marketplace import open_browser

    return open_browser.open_browser(opening)


def _sign_in(shop: Shop, say: Reporter) -> None:
    from cardsync_agent.marketplace import open_browser

    open_browser.sign_in(shop, say)


def _looks(shop: Shop) -> list[Look]:
    from cardsync_agent.marketplace import open_browser

    return open_browser.looks(shop)


def _marketplaces() -> list[str]:
    from cardsync_agent.marketplace import open_browser

    return open_browser.marketplaces()


# A new adapter needs only one more line here.
ADAPTERS = {
    "folder": Adapter(_open_folder),
    "browser": Adapter(_open_browser, _sign_in, _looks, _marketplaces),
}


def adapter_of(shop: Shop) -> Adapter:
    """Return the shop's adapter. Raises UsageProblem if this agent was built without it."""
    if (adapter := ADAPTERS.get(shop.adapter)) is None:
        raise UsageProblem(
            f"this version of the sync app has no adapter {shop.adapter!r}; it has "
            + ", ".join(ADAPTERS)
        )
    return adapter

"""Opens the browser adapter of a shop, lets the person sign in there, and reports for `doctor`
which pack is in use.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cardsync_agent import clock
from cardsync_agent.browser.find_browser import VARIABLE, find
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import NoBrowser, Trouble, browser_errors
from cardsync_agent.browser.your_turn import Turns, YourTurn
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace.browser import BrowserMarketplace
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows, Site, to_record
from cardsync_agent.marketplace.opening import Look, Opening
from cardsync_agent.shops.settings_file import BrowserChoice, Shop
from cardsync_agent.signed_release import read_key
from cardsync_agent.usage import UsageProblem
from cardsync_agent.workflow.pack import Pack, unrecorded
from cardsync_agent.workflow.pack_folder import NoPack, PackFolder, packs_of_program
from cardsync_agent.workflow.recordings import is_known

HEADLESS = "CARDSYNC_AGENT_HEADLESS"
PINNED = "CARDSYNC_AGENT_RELEASE_PUBLIC_KEY"


def open_browser(opening: Opening) -> BrowserMarketplace:
    """Open the adapter. Raises UsageProblem if this computer has no browser."""
    shop = opening.shop
    packs = PackFolder(
        shop.home, opening.keys or pinned_keys(shop.release_public_keys), opening.say
    )
    workflows = BrowserWorkflows(
        shop.folder, shop.home, _site(_choice(shop)), packs, opening.say,
        HumanPace.from_env(os.environ), opening.stop,
    )  # fmt: skip
    return BrowserMarketplace(workflows, opening.client, opening.say)


def sign_in(shop: Shop, say: Reporter) -> None:
    """Open the marketplace in the agent's own browser, and wait until the person is signed in.
    Raises UsageProblem.
    """
    choice = _choice(shop)
    browser, pace = _site(choice).browser, HumanPace.from_env(os.environ)

    def told(turn: YourTurn | None) -> None:
        if turn is not None:
            say("your_turn", str(turn), kind=turn.kind, url=turn.url)

    try:
        pack = PackFolder(shop.home, pinned_keys(shop.release_public_keys), say).in_use(
            choice.marketplace, choice.locale
        )
        page = browser.page()
        with browser_errors():
            page.goto(f"{pack.origins[0]}{pack.home}", wait_until="domcontentloaded")
        turns = Turns(pack, pace, told, clock.sleep)
        if (turn := turns.now(page)) is not None:
            turns.wait(page, turn)
        elif not any(is_known(pack, one) for one in pack.your_turn):
            input("Sign in in the window that has opened, then press Enter here: ")
    except (NoPack, Trouble) as trouble:
        raise UsageProblem(f"the marketplace cannot be opened: {trouble}") from trouble
    finally:
        browser.release()


def looks(shop: Shop) -> list[Look]:
    choice = _choice(shop)
    try:
        silent = Reporter(io.StringIO(), json_events=False, quiet=True)
        packs = PackFolder(shop.home, pinned_keys(shop.release_public_keys), silent)
        pack = packs.newest(choice.marketplace, choice.locale)
        mine = packs.about_recording(choice.marketplace, choice.locale)
    except NoPack as trouble:
        return [Look("look", "pack", str(trouble))]
    left = [name for name in pack.workflows if unrecorded(pack, name)]
    if left:
        first = Look("look", "pack", f"{', '.join(left)}: {to_record(pack, left[0], shop.folder)}")
    else:
        text = f"version {pack.version} for {pack.marketplace}, {pack.locale}"
        first = Look("ok", "pack", text)
    recording = [Look("note", "recording", mine)] if mine else []
    return [first, *_not_shown(pack, shop.folder), *recording]


def _not_shown(pack: Pack, folder: Path) -> Iterator[Look]:
    """Yield the person's turns and the masks that the pack does not have yet. A second factor and a
    CAPTCHA cannot be recorded before they occur, so their absence is not an error.
    """
    command = f"cardsync-agent record --marketplace {pack.marketplace} --folder {folder}"
    for turn in pack.your_turn:
        if is_known(pack, turn) or (turn.kind == "sign_in" and pack.sign_in_origins):
            continue
        word = "look" if turn.kind == "sign_in" else "note"
        name = turn.kind.replace("_", " ")
        text = f"the page of the {name} is not known: run `{command} --your-turn {turn.kind}`"
        yield Look(word, "pack", f"{text} while it is there")
    if masks := [name for name in pack.masked if not pack.elements[name].locators]:
        text = (
            f"{', '.join(masks)}: run `{command} --workflow order_list`, click with Alt and Shift"
        )
        yield Look("look", "pack", f"{text} what names a buyer, and give it this name")


def marketplaces() -> list[str]:
    return sorted(path.parent.name for path in packs_of_program().glob("*/pack.json"))


def pinned_keys(configured: Sequence[str]) -> list[Ed25519PublicKey]:
    """Return the readable pinned keys; `run` reports an unreadable key."""
    keys = []
    for text in os.environ.get(PINNED, "").replace(",", " ").split() or configured:
        with suppress(ValueError):
            keys.append(read_key(text))
    return keys


def _choice(shop: Shop) -> BrowserChoice:
    assert shop.browser is not None, "the settings file has checked it"
    return shop.browser


def _site(choice: BrowserChoice) -> Site:
    environ = dict(os.environ) | ({VARIABLE: str(choice.path)} if choice.path else {})
    try:
        found = find(environ)
    except NoBrowser as trouble:
        raise UsageProblem(str(trouble)) from trouble
    if found is None:
        raise UsageProblem(
            "no Chrome, Edge or Chromium is on this computer; install one, or name it by `path` in"
            " the settings file"
        )
    headless = os.environ.get(HEADLESS) == "1"
    return Site(
        choice.marketplace,
        choice.locale,
        SellersBrowser(found, choice.profile, headless=headless),
    )

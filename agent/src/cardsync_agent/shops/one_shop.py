"""Runs one shop in this process: opens its folder, journal, log and status, and starts the loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from cardsync_agent import __version__
from cardsync_agent.client import Client
from cardsync_agent.events import Reporter
from cardsync_agent.loop import PLATFORM, Agent, Watch
from cardsync_agent.marketplace.adapters import adapter_of
from cardsync_agent.marketplace.opening import Opening
from cardsync_agent.pace import Pace, Stop
from cardsync_agent.shops.log_file import LogFile
from cardsync_agent.shops.rest import rest_now
from cardsync_agent.shops.settings_file import Shop
from cardsync_agent.shops.status_file import StatusFile
from cardsync_agent.state import StateProblem, Store, only_agent
from cardsync_agent.updates import UpdatePolicy, Updates


@dataclass(frozen=True)
class Errand:
    """How a shop is run: until stopped, once, or once without a change at the marketplace."""

    once: bool = False
    request: str | None = None
    review: bool = False


def run_shop(
    shop: Shop,
    key: str,
    policy: UpdatePolicy,
    pace: Pace,
    say: Reporter,
    stop: Stop,
    errand: Errand,
) -> int:
    """Work for one shop; return the exit code. Raises StateProblem and UsageProblem."""
    with only_agent(shop.folder), _heard(shop, key, say) as status, ExitStack() as held:
        store = open_store(shop, say)
        client = Client(shop.server, key)
        try:
            market = adapter_of(shop).open(Opening(shop, pace, stop, say, client, policy.keys))
            held.callback(market.close)
            updates = Updates(policy, PLATFORM, client, store, shop.folder, say, pace, stop)
            watch = Watch(
                polled=status.polled,
                resting=status.resting,
                # A person who sets the shop up wants to see the output now.
                rest=(lambda: None) if errand.review else partial(rest_now, shop.home, shop.quiet),
                review=errand.review,
            )
            agent = Agent(
                client, store, market, shop.folder, say, pace, stop, updates,
                once=errand.once, watch=watch,
            )  # fmt: skip
            _say_started(shop, store, say)
            return agent.once(errand.request) if errand.once else agent.run()
        finally:
            client.close()


@contextmanager
def _heard(shop: Shop, key: str, say: Reporter) -> Iterator[StatusFile]:
    """Write the events to the shop's log and status while it runs."""
    status, log = StatusFile(shop.home), LogFile(shop.home, key)
    with say.heard_by(log, status):
        try:
            yield status
        except Exception as problem:
            # A service has no terminal that shows the error.
            log("problem", f"ended: {type(problem).__name__}: {problem}", True, {})
            raise
        finally:
            status("stopped", "stopped", False, {})


def _say_started(shop: Shop, store: Store, say: Reporter) -> None:
    say(
        "started",
        f"cardsync-agent {__version__}: {shop.folder} with {shop.server}",
        version=__version__,
        server=shop.server,
        folder=str(shop.folder),
        agent_id=store.memory.agent_id,
    )


def open_store(shop: Shop, say: Reporter) -> Store:
    """Open the folder that the agent and the seller share, and the agent's journal of the
    folder.
    """
    try:
        for name in ("inbox", "exports"):
            (shop.folder / name).mkdir(exist_ok=True)
    except OSError as trouble:
        raise StateProblem(
            f"The sync app cannot use the folder {shop.folder}: {trouble}."
        ) from trouble
    store = Store(shop.folder)
    if store.set_aside:
        say(
            "problem",
            f"the journal was unreadable; it was kept as {store.set_aside} and a new one was begun",
            problem=True,
        )
    store.memory.belong_to(shop.server)
    store.save()
    return store

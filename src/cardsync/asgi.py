"""Builds the web application: all routers, the exception handlers, and the resources that a web
process opens and closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from typing import Any

from litestar import Litestar, Response, Router
from litestar.di import Provide
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import SecurityRequirement
from litestar.types import ControllerRouterHandler

from cardsync.access.access_tokens import tokens_of
from cardsync.access.admission import (
    A_KEY,
    A_SESSION,
    A_TOKEN,
    BY_ANY,
    BY_EITHER,
    BY_SESSION,
    admitting,
)
from cardsync.access.caller import KeyRing
from cardsync.access.patience import longest, patient
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.access.sessions import sessions_of
from cardsync.agents.agentwork import routes as agentwork
from cardsync.agents.releases import routes as releases
from cardsync.agents.releases.known_releases import TOPIC, KnownReleases
from cardsync.agents.repairs import routes as repairs
from cardsync.agents.sync import routes as sync
from cardsync.agents.sync.last_seen import LastSeen
from cardsync.agents.workflows import routes as workflows
from cardsync.assistant import protocol
from cardsync.assistant.oauth import consent_pages as consents
from cardsync.assistant.oauth import grant_routes as grants
from cardsync.assistant.oauth import routes as oauth
from cardsync.buying.buylist import routes as buylist
from cardsync.buying.collections import routes as collections
from cardsync.buying.offers import routes as offers
from cardsync.buying.rules import routes as buy_rules
from cardsync.buying.store_credit import routes as store_credit
from cardsync.catalog.market import routes as market
from cardsync.dashboard import page_list as dashboard
from cardsync.dashboard.assets import asset_url, sprite
from cardsync.imports import routes as inventory
from cardsync.network import routes as discovery
from cardsync.network.misses import Misses
from cardsync.platform import limits
from cardsync.platform.database.notify import Notices
from cardsync.platform.database.session import Database
from cardsync.platform.read_json import DECODERS
from cardsync.platform.secret import seal
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store, secret_key
from cardsync.platform.telemetry.exporting import exporting
from cardsync.prices.decisions import routes as price_reviews
from cardsync.prices.files import routes as pricing
from cardsync.prices.plans import plan_pages as plan_pages
from cardsync.prices.plans import routes as plans
from cardsync.prices.recommendations import routes as recommendations
from cardsync.prices.rollback import event_routes as events
from cardsync.prices.rollback import routes as rollbacks
from cardsync.prices.rule_tests import routes as rule_tests
from cardsync.prices.rules import routes as rules
from cardsync.prices.runs import routes as runs
from cardsync.sales.lots import routes as lots
from cardsync.sales.orders import pull_routes as pulls
from cardsync.sales.orders import read_routes as order_reads
from cardsync.sales.orders import returns_routes as returns
from cardsync.sales.orders import routes as orders
from cardsync.sales.orders import sales_routes as sales
from cardsync.sales.orders import sales_summary_routes as sales_summary
from cardsync.sales.orders.pull_sessions import PULLS
from cardsync.sales.pulling import missing_routes as missing_cards
from cardsync.sales.pulling import phone_routes as phones
from cardsync.sales.pulling import routes as pull_links
from cardsync.sales.pulling.event_streams import PullStreams
from cardsync.shop.accounts import manage_routes as management
from cardsync.shop.accounts import passkey_routes as passkeys
from cardsync.shop.accounts import routes as accounts
from cardsync.shop.accounts import session_routes as members
from cardsync.shop.accounts import sign_in_pages as member_pages
from cardsync.shop.activity import routes as activity
from cardsync.shop.activity.settled_counts import SettledCounts
from cardsync.shop.credits import routes as credits
from cardsync.shop.notices import routes as notices
from cardsync.shop.notices import unsubscribe_pages
from cardsync.shop.operators import routes as operators
from cardsync.shop.today import routes as today
from cardsync.shop.today.waiting import KeptCounts
from cardsync.shop.waiting import routes as waiting
from cardsync.stock.cards import kept_routes as kept
from cardsync.stock.cards import routes as cards
from cardsync.stock.contributions import routes as contributions
from cardsync.stock.lists import routes as lists
from cardsync.stock.pictures import routes as pictures
from cardsync.stock.printing import routes as printing
from cardsync.stock.quick_add import routes as quick_add
from cardsync.stock.shelving import count_routes as counts
from cardsync.stock.shelving import routes as shelving
from cardsync.web import error_responses, health, pages, request
from cardsync.web.access_log import observing
from cardsync.web.compression import compressing
from cardsync.web.described_fields import DescribedFields
from cardsync.web.fair_threads import FairThreads
from cardsync.web.heavy_work import heavy_work
from cardsync.web.late_bodies import reading_rests
from cardsync.web.openapi import openapi_config
from cardsync.web.parameters_first import read_parameters_first
from cardsync.web.public_demo import kept_harmless
from cardsync.web.public_fetch import Outward
from cardsync.web.request_forms import unify_requests
from cardsync.web.security_txt import security_txt


async def _not_found(answer: Response[object]) -> Response[object]:
    """Raise NotFoundException for an unknown path under /openapi, so that its response is that of
    all unknown paths.
    """
    if answer.status_code == 404:
        raise NotFoundException
    return answer


def _known_callers(
    path: str,
    *routers: Router,
    security: list[SecurityRequirement],
    **options: Any,
) -> Router:
    return Router(
        path=path,
        route_handlers=routers,
        middleware=[admitting],
        security=security,
        **options,
    )


async def _opened(stack: AsyncExitStack, app: Litestar, settings: Settings) -> None:
    """Open the resources of a web process, put them into the application's state, and register them
    with `stack`, which closes them.
    """
    stack.enter_context(exporting(settings, "web"))
    Outward.allowed = settings.outward_requests
    if settings.database_url is None:
        raise RuntimeError(
            "a web process needs DATABASE_URL; `cardsync serve` starts the embedded database for it"
        )
    opened = Database.open(
        settings.database_url,
        pool=settings.database_pool,
        hot_pool=settings.database_hot_pool,
        read_pool=settings.database_read_pool,
        hot_seconds=settings.polled_seconds,
        seconds=longest(settings),
        slow=settings.slow_seconds,
        pooler=settings.pooler_database_url,
        seal=partial(seal, settings),
    )
    database = await stack.enter_async_context(opened)
    asyncio.get_running_loop().set_default_executor(FairThreads())
    limited, seen, known = (
        RateLimits(database, settings),
        LastSeen(database),
        KnownReleases(database),
    )
    app.state.settings = settings
    app.state.database = database
    app.state.key_ring = KeyRing(database)
    app.state.session_ring = sessions_of(database)
    app.state.token_ring = tokens_of(database)
    app.state.store = open_store(settings)
    app.state.store_health = health.StoreHealth(app.state.store)
    app.state.rate_limits = limited
    app.state.last_seen = seen
    app.state.feed_counts = SettledCounts()
    app.state.waiting = KeptCounts(database, settings.read_seconds)
    app.state.misses = misses = Misses(database, cache(partial(secret_key, settings)))
    app.state.releases = known
    app.state.heavy = await stack.enter_async_context(heavy_work(database, settings))
    app.state.pull_streams = streams = PullStreams()
    app.state.assistants = assistants = protocol.Assistants()
    await stack.enter_async_context(assistants.living())
    await stack.enter_async_context(
        limited.buckets.exchanging(settings.rate_limit_exchange_seconds)
    )
    await stack.enter_async_context(seen.flushing(settings.last_seen_flush_seconds))
    await stack.enter_async_context(misses.flushing(settings.last_seen_flush_seconds))
    await stack.enter_async_context(known.kept_fresh(settings.release_refresh_seconds))
    heard = Notices(database.url)
    heard.on(TOPIC, known.invalidate)
    heard.on(PULLS, streams.changed)
    await stack.enter_async_context(heard.listening())


def _for_agents() -> Router:
    return _known_callers(
        "/api/v1",
        sync.router,
        credits.router,
        inventory.router,
        orders.router,
        sales.router,
        pricing.router,
        runs.explaining,
        events.router,
        agentwork.router,
        repairs.router,
        activity.router,
        plans.router,
        releases.router,
        workflows.router,
        security=[A_KEY],
    )


def _for_any() -> Router:
    """Return the routes for API keys, tokens and signed-in members."""
    return _known_callers(
        "/api",
        pulls.router,
        missing_cards.router,
        order_reads.router,
        returns.router,
        sales_summary.router,
        kept.router,
        cards.router,
        lists.router,
        rules.router,
        rule_tests.router,
        runs.router,
        rollbacks.router,
        quick_add.router,
        store_credit.router,
        offers.router,
        buylist.router,
        collections.router,
        buy_rules.router,
        printing.router,
        today.router,
        discovery.router,
        discovery.network_router,
        market.router,
        recommendations.router,
        price_reviews.router,
        waiting.router,
        security=[A_KEY, A_SESSION, A_TOKEN],
        opt=BY_ANY,
    )


def _for_keys_and_members() -> Router:
    """Return the routes for API keys and signed-in members. Some of them also allow tokens."""
    return _known_callers(
        "/api",
        lots.router,
        security=[A_KEY, A_SESSION],
        opt=BY_EITHER,
    )


def _beside_api() -> Router:
    """Return the routes outside /api for API keys, tokens and signed-in members."""
    return _known_callers(
        "/",
        market.analytics,
        security=[A_KEY, A_SESSION, A_TOKEN],
        opt=BY_ANY,
    )


def _for_members() -> Router:
    return _known_callers(
        "/api",
        contributions.router,
        recommendations.seen,
        shelving.router,
        counts.router,
        pull_links.router,
        quick_add.recovery,
        operators.router,
        grants.router,
        notices.router,
        security=[A_SESSION],
        opt=BY_SESSION,
    )


def _for_members_of_agents() -> Router:
    """Return the routes in the agents' /api/v1 that only signed-in members may use."""
    return _known_callers(
        "/api/v1",
        plans.deciding,
        sync.pictures,
        security=[A_SESSION],
        opt=BY_SESSION,
    )


def _description() -> OpenAPIConfig:
    description = openapi_config()
    description.openapi_router = Router(
        path="/openapi",
        route_handlers=[],
        include_in_schema=False,
        after_request=_not_found,
    )
    return description


DEPENDENCIES = {
    "caller": Provide(request.provide_caller, sync_to_thread=False),
    "session": Provide(request.provide_session),
    "settings": Provide(request.provide_settings, sync_to_thread=False),
    "database": Provide(request.provide_database, sync_to_thread=False),
    "store": Provide(request.provide_store, sync_to_thread=False),
    "heavy": Provide(request.provide_heavy, sync_to_thread=False),
}


def _doors() -> list[ControllerRouterHandler]:
    """Return all routers and routes of the application."""
    return [
        _for_agents(),
        _for_any(),
        _for_keys_and_members(),
        _beside_api(),
        _for_members(),
        _for_members_of_agents(),
        accounts.router,
        management.router,
        members.router,
        passkeys.router,
        member_pages.router,
        phones.router,
        unsubscribe_pages.router,
        dashboard.phones,
        dashboard.offers,
        dashboard.visitors,
        dashboard.pages,
        dashboard.first_run,
        dashboard.files,
        dashboard.elsewhere,
        pictures.router,
        plan_pages.router,
        oauth.router,
        consents.router,
        protocol.router,
        inventory.put_object,
        releases.downloads,
        health.healthz,
        health.readyz,
        security_txt,
    ]


def create_app(settings: Settings, **testing: Any) -> Litestar:
    """Return the ASGI application, which opens its database pools and its object store when it
    starts.
    """

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await _opened(stack, app, settings)
            yield

    app = Litestar(
        type_decoders=DECODERS,
        route_handlers=_doors(),
        middleware=[kept_harmless] if settings.public_demo else [],
        request_class=request.ApiRequest,
        request_max_body_size=limits.BODY_WIRE_BYTES,
        dependencies=DEPENDENCIES,
        exception_handlers=error_responses.HANDLERS,
        lifespan=[lifespan],
        template_config=pages.templates(
            "cardsync.shop.accounts",
            "cardsync.prices.plans",
            "cardsync.shop.notices",
            "cardsync.assistant.oauth",
            "cardsync.dashboard",
            asset=asset_url,
            sprite=sprite,
        ),
        openapi_config=_description(),
        plugins=[DescribedFields()],
        logging_config=None,
        **testing,
    )
    read_parameters_first(app)
    # These wrappers are around the router, too, so that the response for an unknown path also has a
    # request id.
    packing = unify_requests(compressing(app.asgi_handler))
    app.asgi_handler = observing(reading_rests(patient(packing, settings)), settings)
    return app

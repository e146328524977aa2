"""Names the pages of signed-in members: only this module imports a page's module."""

from __future__ import annotations

from litestar import Router

from cardsync import errors, limits
from cardsync.access.admission import admitting, among_strangers
from cardsync.buying.buylist.buylist_settings import PATH as BUYLIST
from cardsync.buying.buylist.visitors import admitting_visitors
from cardsync.buying.offers.customer_link import admitting_customers
from cardsync.buying.offers.offer_links import PATH as OFFERS
from cardsync.dashboard.assets import static_file
from cardsync.dashboard.frame import framing
from cardsync.dashboard.pages import (
    account,
    activity_feed,
    add_cards,
    assistants,
    card,
    cards,
    counts,
    credential_pages,
    credit_desk,
    customer,
    customer_offer,
    customers,
    cycles,
    exports,
    find,
    lists,
    network,
    notice_pages,
    offer_desk,
    offer_list,
    one_list,
    operator,
    order,
    orders,
    phone_pull,
    pricing,
    pricing_backtest,
    pricing_reviews,
    pricing_rollback,
    pricing_rule,
    pricing_runs,
    pricing_sales,
    pricing_settings,
    pricing_tests,
    printing,
    public_buylist,
    pulls,
    recommendations,
    returns,
    sales,
    selected_cards,
    set_up,
    settings_pages,
    shelves,
    styleguide,
    sync,
    today,
    uploads,
    webhook_pages,
)
from cardsync.dashboard.shell import refused
from cardsync.pulling.phone import admitting_phones
from cardsync.web import forms

pages = Router(
    path="/",
    route_handlers=[
        *cards.ROUTES,
        *card.ROUTES,
        orders.orders_page,
        order.order_page,
        order.mark_order,
        customers.customers_page,
        *customer.ROUTES,
        *returns.ROUTES,
        *printing.ROUTES,
        *sales.ROUTES,
        *shelves.ROUTES,
        *counts.ROUTES,
        lists.lists_page,
        lists.make_list,
        lists.rename_list,
        lists.delete_list,
        one_list.list_page,
        one_list.add_page,
        one_list.add_cards,
        one_list.remove_cards,
        selected_cards.add_selected,
        selected_cards.shelve_selected,
        selected_cards.pin_selected,
        selected_cards.unpin_selected,
        selected_cards.publish_selected,
        selected_cards.export_selected,
        selected_cards.export_cards,
        *today.ROUTES,
        *sync.ROUTES,
        *cycles.ROUTES,
        *uploads.ROUTES,
        *add_cards.ROUTES,
        *offer_list.ROUTES,
        *offer_desk.ROUTES,
        *credit_desk.ROUTES,
        activity_feed.activity_page,
        activity_feed.undo_entry,
        *pricing.ROUTES,
        *pricing_backtest.ROUTES,
        *pricing_rollback.ROUTES,
        *pricing_rule.ROUTES,
        *pricing_runs.ROUTES,
        *pricing_sales.ROUTES,
        *pricing_reviews.ROUTES,
        *pricing_settings.ROUTES,
        *pricing_tests.ROUTES,
        *account.ROUTES,
        *network.ROUTES,
        *exports.ROUTES,
        find.find_page,
        *operator.ROUTES,
        *pulls.ROUTES,
        *recommendations.ROUTES,
        *settings_pages.ROUTES,
        *credential_pages.ROUTES,
        *assistants.ROUTES,
        *notice_pages.ROUTES,
        *webhook_pages.ROUTES,
        *set_up.ROUTES,
        styleguide.styleguide,
    ],
    middleware=[admitting, framing],
    exception_handlers={errors.Problem: refused},
    include_in_schema=False,
    request_max_body_size=limits.PAGE_FORM_BYTES,
)
first_run = Router(
    path="/",
    route_handlers=set_up.STRANGERS,
    middleware=[among_strangers],
    exception_handlers={errors.Problem: forms.refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)
# A phone's page has its token in the address and no member.
with_a_link = Router(
    path="/",
    route_handlers=[phone_pull.phone_page, phone_pull.mark_by_form],
    middleware=[admitting_phones],
)
phones = Router(
    path="/p",
    route_handlers=[phone_pull.worker, with_a_link],
    exception_handlers={errors.Problem: phone_pull.refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)
offers = Router(
    path=OFFERS,
    route_handlers=[customer_offer.offer_page, customer_offer.answer_by_form],
    middleware=[admitting_customers],
    exception_handlers={errors.Problem: customer_offer.refused},
    include_in_schema=False,
    request_max_body_size=limits.PAGE_FORM_BYTES,
)
visitors = Router(
    path=BUYLIST,
    route_handlers=[public_buylist.buylist_page, public_buylist.send_by_form],
    middleware=[admitting_visitors],
    exception_handlers={errors.Problem: public_buylist.refused},
    include_in_schema=False,
    request_max_body_size=limits.PAGE_FORM_BYTES,
)
files = static_file

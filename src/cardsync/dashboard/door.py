"""The pages of signed-in members, by name: a page's module is imported here and nowhere else."""

from __future__ import annotations

from litestar import Router

from cardsync import errors, limits
from cardsync.access.admission import admitting, among_strangers
from cardsync.dashboard.assets import static_file
from cardsync.dashboard.pages import (
    account,
    activity,
    add_cards,
    card,
    cards,
    counts,
    customer,
    customers,
    cycles,
    exports,
    lists,
    network,
    one_list,
    operator,
    order,
    orders,
    phone_pull,
    pricing,
    pricing_backtest,
    pricing_rollback,
    pricing_rule,
    pricing_runs,
    pricing_sales,
    pricing_settings,
    pricing_tests,
    printing,
    pulls,
    returns,
    sales,
    selection,
    set_up,
    settings,
    shelves,
    styleguide,
    sync,
    today,
    uploads,
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
        selection.add_selected,
        selection.shelve_selected,
        selection.pin_selected,
        selection.unpin_selected,
        selection.publish_selected,
        selection.export_selected,
        selection.export_cards,
        *today.ROUTES,
        *sync.ROUTES,
        *cycles.ROUTES,
        *uploads.ROUTES,
        *add_cards.ROUTES,
        activity.activity_page,
        activity.undo_entry,
        *pricing.ROUTES,
        *pricing_backtest.ROUTES,
        *pricing_rollback.ROUTES,
        *pricing_rule.ROUTES,
        *pricing_runs.ROUTES,
        *pricing_sales.ROUTES,
        *pricing_settings.ROUTES,
        *pricing_tests.ROUTES,
        *account.ROUTES,
        *network.ROUTES,
        *exports.ROUTES,
        *operator.ROUTES,
        *pulls.ROUTES,
        *settings.ROUTES,
        *set_up.ROUTES,
        styleguide.styleguide,
    ],
    middleware=[admitting],
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
files = static_file

"""Every form of a member's pages is read in one way, which checks its token, and every page opens
its transactions in one way.
"""

from pathlib import Path

from cardsync.dashboard import form_handlers, page_list
from cardsync.web import forms

PAGES = Path(page_list.__file__).parent / "pages"


def _forms(router):
    return [
        handler
        for route in router.routes
        for handler in route.route_handlers
        if "POST" in handler.http_methods
    ]


def test_every_form_of_a_member_is_read_once_its_token_is_checked():
    sent = _forms(page_list.pages)
    assert len(sent) > 100
    assert [one.fn.__name__ for one in sent if one.before_request is not form_handlers._read] == []


def test_every_other_form_is_read_before_a_transaction_is_opened():
    routers = (page_list.first_run, page_list.phones, page_list.offers, page_list.visitors)
    sent = [one for router in routers for one in _forms(router)]
    assert len(sent) == 5
    assert [one.fn.__name__ for one in sent if one.before_request is not forms.keep_form] == []


def test_no_page_opens_a_transaction_of_its_callers_in_another_way():
    own = ("database.tenant(caller.seller_id)", "database.bounded(", "database.readings")
    found = {
        path.name: text
        for path in PAGES.glob("*.py")
        for text in own
        if text in path.read_text("utf-8")
    }
    assert found == {}

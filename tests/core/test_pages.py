"""The environment of the pages: strict about values that are missing, and every value escaped."""

import pytest
from jinja2 import Environment, UndefinedError
from markupsafe import Markup

from cardsync.web import pages


@pytest.fixture(scope="module")
def environment() -> Environment:
    return pages.templates(
        "cardsync.shop.accounts", asset=str, sprite=Markup
    ).engine_instance.engine


def test_a_page_that_lacks_a_value_fails(environment):
    with pytest.raises(UndefinedError, match="advice"):
        environment.get_template("failure.html").render(heading="No", status=404, request_id="x")


@pytest.mark.parametrize("name", ["heading", "message"])
def test_a_value_is_text_and_never_markup(environment, name):
    values = {"heading": "No", "message": "No"} | {name: "<b>'\"&"}
    page = environment.get_template("message.html").render(values)
    assert "<b>" not in page
    assert "&lt;b&gt;&#39;&#34;&amp;" in page


def test_every_template_can_be_read(environment):
    for name in environment.list_templates():
        environment.get_template(name)

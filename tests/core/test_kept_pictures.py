"""A page that lost a button differs from its picture; one whose figures changed does not."""

from PIL import Image, ImageDraw
from tests.kept_pictures import TOLERANCE, changed, name_of


def a_page(text, button=True, width=480, height=300):
    page = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(page)
    draw.text((20, 20), text, fill="black")
    if button:
        draw.rectangle((300, 200, 420, 240), fill="navy")
    return page


def test_what_a_day_changes_is_tolerated():
    assert changed(a_page("12 orders"), a_page("14 orders")) <= TOLERANCE


def test_a_button_that_is_gone_is_noticed():
    assert changed(a_page("12 orders"), a_page("12 orders", button=False)) > TOLERANCE


def test_a_long_page_hides_no_more_than_a_short_one():
    long = a_page("12 orders", height=1_000)
    assert changed(long, a_page("12 orders", button=False, height=1_000)) > TOLERANCE
    assert changed(long, a_page("12 orders", height=900)) > TOLERANCE


def test_another_width_is_another_picture():
    assert changed(a_page("12"), a_page("12", width=481)) == 1


def test_a_route_names_its_picture():
    assert name_of("/orders/{order_id:int}") == "orders-order-id-int"
    assert name_of("/") == "start"

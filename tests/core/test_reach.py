"""From where an address can be reached."""

import pytest

from cardsync.web.reach import reach_of


@pytest.mark.parametrize(
    ("origin", "reach"),
    [
        ("http://127.0.0.1:8000", "computer"),
        ("http://localhost:8000", "computer"),
        ("http://shop.localhost", "computer"),
        ("http://[::1]:8000", "computer"),
        ("http://192.168.1.20:8000", "network"),
        ("http://10.0.0.4", "network"),
        ("http://[fd00::4]:8000", "network"),
        ("http://100.101.102.103:8000", "network"),
        ("http://shop-pc:8000", "network"),
        ("http://shop-pc.local:8000", "network"),
        ("https://cards.fernhill.example", "world"),
        ("https://8.8.8.8", "world"),
    ],
)
def test_who_reaches_it(origin, reach):
    assert reach_of(origin) == reach

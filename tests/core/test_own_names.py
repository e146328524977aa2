"""The Host headers that name us, and the origins that are believed beside PUBLIC_URL's."""

import pytest

from cardsync.platform.settings import Settings

LOOPBACK = [
    "localhost",
    "localhost:8000",
    "LOCALHOST:9",
    "127.0.0.1",
    "127.0.0.1:8000",
    "127.8.9.1:1",
    "[::1]:8000",
]
OTHERS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "",
    ":8000",
    "a@b",
]
NO_NAMES = ["[", "]", "[::1", "a]b", "[v1.x]", "[evil.example]"]


@pytest.mark.parametrize(
    "bind", ["127.0.0.1:8000", "0.0.0.0:8000", "[::]:8000", "192.168.1.5:8000"]
)
@pytest.mark.parametrize("public_url", [None, "https://shop.example"])
def test_loopback_names_are_ours_and_foreign_names_never(bind, public_url):
    settings = Settings(bind=bind, public_url=public_url)
    assert all(settings.is_own_name(host) for host in LOOPBACK)
    assert not any(settings.is_own_name(host) for host in OTHERS + NO_NAMES)


@pytest.mark.parametrize(
    ("bind", "public_url", "host", "ours"),
    [
        ("192.168.1.5:8000", None, "192.168.1.5:8000", True),
        ("192.168.1.5:8000", None, "192.168.1.6:8000", False),
        ("shop.local:8000", None, "shop.local:8000", True),
        ("shop.local:8000", None, "Shop.Local", True),
        ("127.0.0.1:8000", None, "192.168.1.5:8000", False),
        # A server on all interfaces may have any address, but not any name.
        ("0.0.0.0:8000", None, "192.168.1.5:8000", True),
        ("[::]:8000", None, "[fd00::5]:8000", True),
        ("0.0.0.0:8000", None, "shop.local:8000", False),
        ("0.0.0.0:8000", "https://shop.example", "192.168.1.5:8000", False),
    ],
)
def test_the_address_served_is_ours(bind, public_url, host, ours):
    assert Settings(bind=bind, public_url=public_url).is_own_name(host) is ours

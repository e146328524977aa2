"""The sender of a request: the peer, or the address that trusted proxies name."""

import pytest

from cardsync.access.rate_limits.addresses import client_of
from cardsync.platform.setting_groups.access_settings import read_networks

PROXIES = read_networks("10.0.0.0/8, 2001:db8:ffff::1")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.7", [], "192.0.2.7"),
        ("192.0.2.7", ["198.51.100.1"], "192.0.2.7"),  # nobody asked it to forward
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        (
            "10.0.0.1",
            ["203.0.113.9, 198.51.100.1"],
            "198.51.100.1",
        ),  # the client wrote the left one
        ("10.0.0.1", ["203.0.113.9, 198.51.100.1, 10.2.3.4"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.2,10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, "], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["[2001:db8:1:2::9]:443"], "2001:db8:1:2::/64"),
        ("2001:db8:ffff::1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", [], "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", [], "192.0.2.7"),
        (None, ["198.51.100.1"], "unknown"),
        ("/run/socket", [], "unknown"),
    ],
)
def test_the_rightmost_hop_that_is_no_trusted_proxy(peer, forwarded, client):
    assert client_of(peer, forwarded, PROXIES) == client


def test_without_trusted_proxies_nothing_forwarded_is_believed():
    assert read_networks("") == ()
    assert client_of("127.0.0.1", ["198.51.100.1"], ()) == "127.0.0.1"


def test_what_is_no_network_is_named():
    with pytest.raises(ValueError, match=r"proxy\.example"):
        read_networks("10.0.0.0/8, proxy.example")

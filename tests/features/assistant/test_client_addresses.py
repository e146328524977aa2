"""Addresses that strangers name: which may be redirect addresses, and which documents are read. A
document is read from the public internet alone, whatever an address or a name looks like.
"""

import socket
from ipaddress import ip_address

import pytest

from cardsync.assistant.oauth import fetch
from cardsync.assistant.oauth.fetch import BYTES_MOST, fetch_json
from cardsync.assistant.oauth.redirects import is_one_of, problem, source
from cardsync.web.public_fetch import NotFetched, is_public
from oauth_builder import a_site

PATH = "/client.json"
# Hosts that lead inside, in every way to write them.
INSIDE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001",
    "0.0.0.0", "0", "10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254",
    "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "localhost",
    "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[ff02::1]",
    "[::ffff:127.0.0.1]", "[::ffff:10.0.0.7]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[64:ff9b:1::a00:7]", "[2002:7f00:1::]", "[2002:a00:7::]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "[2001:db8::1]", "[100::1]",
]  # fmt: skip


@pytest.mark.parametrize("host", INSIDE)
async def test_no_address_inside_is_asked(host):
    with pytest.raises(NotFetched, match=r"not in the public internet|not known"):
        await fetch_json(f"https://{host}{PATH}")


@pytest.mark.parametrize("host", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_an_address_of_the_public_internet_is_one(host):
    assert is_public(ip_address(host))


@pytest.mark.parametrize(
    "found",
    [
        ["10.0.0.7"],
        ["::1"],
        ["::ffff:10.0.0.7"],
        # One address of several is enough to be led inside at the next look-up.
        ["8.8.8.8", "127.0.0.1"],
        ["2606:4700::1111", "fd00::1"],
        [],
    ],
)
async def test_a_name_that_leads_inside_is_not_asked(found):
    async def look_up(host, port):
        assert (host, port) == ("assistant.example", 443)
        return [ip_address(one) for one in found]

    with pytest.raises(NotFetched, match="not in the public internet"):
        await fetch_json(f"https://assistant.example{PATH}", look_up=look_up)


async def test_a_name_that_is_not_known():
    async def look_up(host, port):
        raise socket.gaierror

    with pytest.raises(NotFetched, match="is not known"):
        await fetch_json(f"https://assistant.example{PATH}", look_up=look_up)


async def test_the_connection_goes_to_the_address_that_was_checked():
    """The name leads elsewhere the second time; nobody looks a second time."""
    asked = []

    async def look_up(host, port):
        asked.append(host)
        return [ip_address("127.0.0.1")]

    async with a_site() as site:
        site.shows({"hello": "here"})
        url = site.url.replace("127.0.0.1", "localhost")
        told = await fetch_json(url, development=True, look_up=look_up)
    assert (told, asked) == ({"hello": "here"}, ["localhost"])


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://assistant.example/c", "https"),
        ("ftp://assistant.example/c", "https"),
        ("file:///etc/passwd", "https"),
        ("https://assistant.example", "path"),
        ("https://assistant.example/", "path"),
        ("https://assistant.example/a/../b", "path"),
        ("https://assistant.example/a/%2E%2e/b", "path"),
        ("https://assistant.example/c#part", "plain"),
        ("https://user@assistant.example/c", "host"),
        ("https://user:word@assistant.example/c", "host"),
        ("https://ASSISTANT.example/c", "host"),
        ("https://assistant.example\\@10.0.0.7/c", "plain"),
        ("https://assistant.example:22/c", "port"),
        ("https://assistant.example:x/c", "address"),
        ("https:///c", "host"),
        ("https://[::1/c", "address"),
        ("https://assistant.example/" + "c" * 500, "plain"),
        ("https://assist\u00e4nt.example/c", "plain"),
    ],
)
async def test_an_address_that_is_no_clients(url, reason):
    with pytest.raises(NotFetched, match=reason):
        await fetch_json(url)


async def test_only_a_developers_service_reads_documents_of_its_own_machine():
    async with a_site() as site:
        with pytest.raises(NotFetched, match="https"):
            await fetch_json(site.url)
        assert await fetch_json(site.url, development=True) == {}
        # The setting opens this machine, not its network.
        with pytest.raises(NotFetched, match="not in the public internet"):
            await fetch_json("https://10.0.0.7/c", development=True)
    assert site.asked == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 302, "headers": {"Location": "https://127.0.0.1/"}}, "status 302"),
        ({"status": 404}, "status 404"),
        ({"headers": {"Content-Type": "text/html"}}, "no JSON"),
        ({"headers": {}}, "no JSON"),
        ({"body": b"{"}, "no JSON"),
        ({"body": b"[" * 50_000}, "no JSON"),
        ({"body": b'"' + b"x" * BYTES_MOST + b'"'}, "larger"),
        (
            {"headers": {"Content-Type": "application/json", "Content-Encoding": "gzip"}},
            "packed",
        ),
        ({"seconds": 3}, "within"),
    ],
)
async def test_an_answer_that_is_no_document(monkeypatch, answer, reason):
    if "seconds" in answer:
        # The time is a constant of the module; the test waits for less of it.
        monkeypatch.setattr(fetch, "SECONDS", 0.5)
    async with a_site() as site:
        for name, value in answer.items():
            setattr(site, name, value)
        with pytest.raises(NotFetched, match=reason):
            await fetch_json(site.url, development=True)
    assert site.asked == 1


@pytest.mark.parametrize(
    "uri",
    [
        "https://assistant.example/callback",
        "https://assistant.example:8443/callback?of=cardsync",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:1234/callback",
        "http://[::1]:1234/callback",
        "http://localhost:1234/callback",
        "com.example.helper:/callback",
        "helper://answer/callback",
    ],
)
def test_a_redirect_address_that_a_client_may_have(uri):
    assert problem(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        "http://assistant.example/callback",
        "http://127.0.0.2/callback",
        "http://10.0.0.7/callback",
        "http://localhost.evil.example/callback",
        "https://assistant.example/#part",
        "https://user@assistant.example/",
        "https://assistant.example;script-src/",
        "https://Assistant.example/",
        "https:/assistant.example/",
        "https://",
        "HTTPS://assistant.example/",
        "//assistant.example/",
        "/callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///tmp/x",
        "ws://127.0.0.1/",
        "helper:",
        "https://assistant.example/a b",
        "https://assistant.example/\n",
        "https://assistant.example/" + "x" * 2_000,
        "",
        None,
        7,
    ],
)
def test_a_redirect_address_that_no_client_may_have(uri):
    assert problem(uri) is not None


@pytest.mark.parametrize(
    ("registered", "uri", "same"),
    [
        ("https://a.example/c", "https://a.example/c", True),
        ("https://a.example/c", "https://a.example/c/", False),
        ("https://a.example/c", "https://a.example/C", False),
        ("https://a.example/c", "https://a.example:443/c", False),
        ("https://a.example:1/c", "https://a.example:2/c", False),
        ("http://127.0.0.1/c", "http://127.0.0.1:5/c", True),
        ("http://127.0.0.1:4/c", "http://127.0.0.1:5/c", True),
        ("http://127.0.0.1:4/c", "http://127.0.0.1/c", True),
        ("http://[::1]/c", "http://[::1]:5/c", True),
        ("http://127.0.0.1/c", "http://127.0.0.1:5/d", False),
        ("http://127.0.0.1/c", "http://127.0.0.1:5/c?x", False),
        ("http://127.0.0.1/c", "http://[::1]:5/c", False),
        ("http://127.0.0.1/c", "http://localhost:5/c", False),
        ("http://localhost:4/c", "http://localhost:5/c", False),
        ("http://localhost:4/c", "http://127.0.0.1:4/c", False),
        ("http://127.0.0.1", "http://127.0.0.1:5@evil.example", False),
        ("helper://c", "helper://c", True),
    ],
)
def test_redirect_addresses_are_compared_exactly_but_for_the_ports_of_loopback(
    registered, uri, same
):
    assert is_one_of(uri, [registered]) == same


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("https://a.example:8443/c?x=1", "https://a.example:8443"),
        ("http://127.0.0.1:5/c", "http://127.0.0.1:5"),
        ("http://[::1]:5/c", "http:"),
        ("helper://c", "helper:"),
    ],
)
def test_where_the_consent_may_lead_is_named_in_the_pages_policy(uri, named):
    assert source(uri) == named

"""The offer of a release: a table of cases, and what must hold for any releases, kills and
installations.
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cardsync.agents.releases.offer import (
    Installation,
    Published,
    choose,
    read_version,
    same_platform,
    shelve,
    takes_part,
)

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def a_release(version: str, platform: str = "linux/amd64", **facts) -> Published:
    given = {
        "channel": "stable",
        "percentage": 100,
        "min_from": None,
        "expires_at": NOW + timedelta(days=1),
    } | facts
    if isinstance(given["min_from"], str):
        given["min_from"] = Version(given["min_from"])
    return Published(
        product="agent", version=Version(version), platform=platform,
        storage_key=f"releases/x/{version}.whl", size=1,
        sha256="", signature="", record="{}", record_signature="", **given,
    )  # fmt: skip


def ask(
    releases, kills=(), version="1.0", platform="linux/amd64", channel="stable", seat="7", now=NOW
):
    """(update_available, force_update, latest_version)."""
    offer = choose(
        shelve(list(releases), set(kills)), Installation(seat, version, platform, channel), now
    )
    return (
        offer.release is not None,
        offer.must_update,
        str(offer.release.version) if offer.release else None,
    )


NOTHING = (False, False, None)
MUST = (False, True, None)


def takes(version: str) -> tuple:
    return True, False, version


def must_take(version: str) -> tuple:
    return True, True, version


OLD = NOW - timedelta(seconds=1)
CASES = {
    "nothing published": ([], {}, NOTHING),
    "a newer one": ([a_release("1.1")], {}, takes("1.1")),
    "the newest of several": (
        [a_release("1.2"), a_release("1.10"), a_release("1.9")],
        {},
        takes("1.10"),
    ),
    "the same": ([a_release("1.0")], {}, NOTHING),
    "the same, written otherwise": ([a_release("1.0.0")], {"version": "v1.0"}, NOTHING),
    "only older ones": ([a_release("0.9"), a_release("1.0rc1")], {}, NOTHING),
    "from a pre-release to its release": ([a_release("1.1")], {"version": "1.1rc2"}, takes("1.1")),
    "a post release and a local version": (
        [a_release("1.0.post1"), a_release("1.0+fix")],
        {},
        takes("1.0.post1"),
    ),
    "another platform": ([a_release("1.1", "windows/amd64")], {}, NOTHING),
    "the same platform by another name": (
        [a_release("1.1")],
        {"platform": "Linux/x86_64"},
        takes("1.1"),
    ),
    "no platform takes any": (
        [a_release("1.1"), a_release("1.2", "darwin/arm64")],
        {"platform": None},
        takes("1.2"),
    ),
    "an empty platform is none": (
        [a_release("1.1", "darwin/arm64")],
        {"platform": ""},
        takes("1.1"),
    ),
    "another channel": ([a_release("1.1", channel="beta")], {}, NOTHING),
    "its own channel": (
        [a_release("1.1", channel="beta"), a_release("1.2")],
        {"channel": "beta"},
        takes("1.1"),
    ),
    "expired": ([a_release("1.2", expires_at=NOW), a_release("1.1")], {}, takes("1.1")),
    "not reached by the roll-out": (
        [a_release("1.2", percentage=0), a_release("1.1")],
        {},
        takes("1.1"),
    ),
    "too old for it": ([a_release("2.0", min_from="1.5"), a_release("1.5")], {}, takes("1.5")),
    "just old enough": ([a_release("2.0", min_from="1.0.0")], {}, takes("2.0")),
    "no version counts as 0": ([a_release("0.1")], {"version": None}, takes("0.1")),
    "an empty version counts as 0": ([a_release("0.1")], {"version": " "}, takes("0.1")),
    "no version is too old for a minimum": (
        [a_release("2.0", min_from="0.1")],
        {"version": None},
        NOTHING,
    ),
    # Kills.
    "killed": ([a_release("1.1")], {"kills": ["1.0"]}, must_take("1.1")),
    "killed under another spelling": ([a_release("1.1")], {"kills": ["1.0.0"]}, must_take("1.1")),
    "another one is killed": ([a_release("1.1")], {"kills": ["0.9", "1.0.1"]}, takes("1.1")),
    "killed and nowhere to go": ([a_release("1.0"), a_release("0.9")], {"kills": ["1.0"]}, MUST),
    "killed wins over the roll-out": (
        [a_release("1.1", percentage=1)],
        {"kills": ["1.0"]},
        must_take("1.1"),
    ),
    "killed does not go to a release that was pulled": (
        [a_release("1.1", percentage=0)],
        {"kills": ["1.0"]},
        (False, True, None),
    ),
    "killed, but too old for it": ([a_release("2.0", min_from="1.5")], {"kills": ["1.0"]}, MUST),
    "killed, and only an expired one": (
        [a_release("1.1", expires_at=OLD)],
        {"kills": ["1.0"]},
        MUST,
    ),
    "a killed release is not offered": (
        [a_release("1.2"), a_release("1.1")],
        {"kills": ["1.2"]},
        takes("1.1"),
    ),
    "not even to a killed one": (
        [a_release("1.2"), a_release("1.1")],
        {"kills": ["1.2.0", "1.0"]},
        must_take("1.1"),
    ),
    # PEP 440 cannot read these.
    "unparseable": ([a_release("1.1")], {"version": "nightly"}, NOTHING),
    "unparseable and killed": (
        [a_release("1.1")],
        {"version": "nightly", "kills": ["nightly"]},
        must_take("1.1"),
    ),
    "unparseable, a like one killed": (
        [a_release("1.1")],
        {"version": "nightly", "kills": ["Nightly"]},
        NOTHING,
    ),
    "unparseable, killed, nothing there": ([], {"version": "nightly", "kills": ["nightly"]}, MUST),
    "unparseable, killed, a minimum": (
        [a_release("2.0", min_from="0"), a_release("1.1")],
        {"version": "nightly", "kills": ["nightly"]},
        must_take("1.1"),
    ),
    "absurdly long": ([a_release("1.1")], {"version": "0." * 5000 + "1"}, NOTHING),
    "a kill that is no version": ([a_release("1.1")], {"kills": ["nightly"]}, takes("1.1")),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table(name):
    releases, asked, expected = CASES[name]
    assert ask(releases, **asked) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("linux/x86_64", "linux/amd64", True),
        ("Darwin/aarch64", "macos/arm64", True),
        ("windows/AMD64", "win32/x64", True),
        ("linux/amd64", "linux/arm64", False),
        ("linux/amd64", "windows/amd64", False),
        ("linux/amd64", "linux", False),
    ],
)
def test_platforms_are_compared_by_what_they_mean(one, other, same):
    assert (same_platform(one) == same_platform(other)) is same


# Properties of any of them.

VERSIONS = st.sampled_from(
    ["0.1", "0.9", "1.0rc1", "1.0", "1.0.0", "1.0.post1", "1.1.dev3", "1.1", "1.10", "2", "1!0.1"]
)
PLATFORMS = st.sampled_from(["linux/amd64", "linux/x86_64", "windows/amd64", "darwin/arm64"])
RELEASES = st.builds(
    a_release,
    VERSIONS,
    PLATFORMS,
    channel=st.sampled_from(["stable", "beta"]),
    percentage=st.integers(0, 100),
    min_from=st.none() | VERSIONS,
    expires_at=st.sampled_from([OLD, NOW, NOW + timedelta(days=1)]),
)
SHELVES = st.builds(
    shelve, st.lists(RELEASES, max_size=12), st.sets(VERSIONS | st.just("nightly"), max_size=4)
)
INSTALLATIONS = st.builds(
    Installation,
    st.integers(1, 10**6).map(str),
    st.none() | VERSIONS | st.sampled_from(["nightly", ""]),
    st.none() | PLATFORMS,
    st.sampled_from(["stable", "beta"]),
)


@given(SHELVES, INSTALLATIONS)
def test_never_a_downgrade_a_killed_an_expired_or_a_foreign_one(shelf, asks):
    release = choose(shelf, asks, NOW).release
    if release is None:
        return
    installed = read_version(asks.version or "0")
    assert installed is None or release.version > installed
    assert not shelf.has_killed(release.version)
    assert release.expires_at > NOW
    assert release.channel == asks.channel
    assert asks.platform is None or same_platform(release.platform) == same_platform(asks.platform)
    assert release.min_from is None or (installed is not None and installed >= release.min_from)


@given(SHELVES, INSTALLATIONS)
def test_exactly_the_killed_must_update(shelf, asks):
    text = asks.version or "0"
    installed = read_version(text)
    killed = text in shelf.kills if installed is None else shelf.has_killed(installed)
    assert choose(shelf, asks, NOW).must_update is killed


@given(SHELVES, INSTALLATIONS)
def test_nothing_newer_that_fits_is_passed_over_but_by_the_roll_out(shelf, asks):
    offer = choose(shelf, asks, NOW)
    for release in shelf.releases:
        if offer.release is not None and release.version <= offer.release.version:
            continue
        alone = choose(shelve([release], set(shelf.kills)), asks, NOW)
        assert alone.release is None


@given(st.text(max_size=30), VERSIONS.map(Version), st.integers(0, 100), st.integers(0, 100))
def test_whoever_was_reached_stays_reached_as_the_percentage_goes_up(seat, version, one, other):
    low, high = sorted((one, other))
    assert takes_part(seat, version, high) or not takes_part(seat, version, low)
    assert takes_part(seat, version, 100)
    assert not takes_part(seat, version, 0)


def test_a_percentage_is_about_that_part_of_the_seats_and_each_version_draws_anew():
    first = {seat for seat in range(10_000) if takes_part(str(seat), Version("1.1"), 10)}
    second = {seat for seat in range(10_000) if takes_part(str(seat), Version("1.2"), 10)}
    assert 850 < len(first) < 1150
    assert len(first & second) < 250


def test_the_place_in_a_roll_out_is_the_same_in_every_process():
    # A hash that Python salts would draw anew at each start.
    assert [takes_part("42", Version("1.1"), percentage) for percentage in (77, 78)] == [
        False,
        True,
    ]

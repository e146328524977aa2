"""API keys: their form, their check characters, and that a mistyped one never reaches the
database.
"""

import hashlib
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access import keys
from cardsync.access.caller import KeyRing, bearer, owner_of
from cardsync.platform import errors
from cardsync.platform.database.session import Database

# Written out again on purpose: the form is a promise to agents that exist.
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def check_of(head: str) -> str:
    number, digits = zlib.crc32(head.encode()), ""
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits = BASE62[rest] + digits
    assert number == 0
    return digits


def test_a_key_is_csk_then_32_random_then_6_check_characters():
    key = keys.new_key()
    assert re.fullmatch(r"csk_[0-9A-Za-z]{38}", key)
    assert key[-6:] == check_of(key[:-6])
    assert keys.is_well_formed(key)


def test_the_check_characters_of_a_known_key():
    head = "csk_" + "0" * 32
    assert zlib.crc32(head.encode()) == 2_308_175_725
    assert keys.checksum(head) == check_of(head) == "2WCrwj"


def test_a_small_checksum_is_padded_on_the_left_with_zeros():
    # The first of these whose CRC-32 needs fewer than six digits.
    head = next(head for n in range(10**6) if zlib.crc32((head := f"csk_{n:032}").encode()) < 62**4)
    key = head + keys.checksum(head)
    assert key[-6:-4] == "00"
    assert (len(key), keys.is_well_formed(key)) == (42, True)


def test_no_two_keys_are_alike():
    made = {keys.new_key() for _ in range(2000)}
    assert len(made) == 2000
    # Every character of the alphabet turns up: nothing narrows the choice.
    assert set("".join(key[4:36] for key in made)) == set(BASE62)


KEY = "csk_" + "abcdefghijklmnopqrstuvwxyzABCDEF"
KEY += check_of(KEY)


@given(st.integers(0, 41), st.sampled_from(BASE62))
def test_one_wrong_character_is_noticed(position, character):
    if KEY[position] != character:
        assert not keys.is_well_formed(KEY[:position] + character + KEY[position + 1 :])


@given(st.integers(4, 34))
def test_two_characters_swapped_are_noticed(position):
    swapped = KEY[:position] + KEY[position + 1] + KEY[position] + KEY[position + 2 :]
    assert swapped == KEY or not keys.is_well_formed(swapped)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "csk_",
        KEY[:-1],
        KEY + "0",
        "CSK_" + KEY[4:],
        KEY[4:],
        " " + KEY,
        KEY[:-1] + "é",
        "csk_" + "ü" * 38,
        "x" * 42,
    ],
)
def test_what_is_not_of_the_form_is_no_key(text):
    assert not keys.is_well_formed(text)


def test_only_the_sha256_is_kept():
    assert keys.key_hash(KEY) == hashlib.sha256(KEY.encode()).digest()


async def test_a_wrong_check_character_is_refused_without_a_query():
    # Nothing listens there: a query would raise something else than Unauthorized.
    async with Database.open(
        "postgresql://nobody@/nowhere?host=/nonexistent", pool=1, hot_pool=1
    ) as database:
        database.hot.timeout = 0.1
        ring = KeyRing(database)
        wrong = KEY[:-1] + ("0" if KEY[-1] != "0" else "1")
        with pytest.raises(errors.Unauthorized):
            await owner_of(ring, f"Bearer {wrong}")
        with pytest.raises(Exception) as reached:
            await owner_of(ring, f"Bearer {KEY}")
        assert not isinstance(reached.value, errors.Problem)


@pytest.mark.parametrize("header", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER   {KEY} "])
def test_the_scheme_may_be_written_in_any_case(header):
    assert bearer(header) == KEY


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        (None, 'Bearer realm="cardsync"'),
        ("", 'Bearer realm="cardsync"'),
        ("Bearer", 'Bearer realm="cardsync", error="invalid_token"'),
        (f"Basic {KEY}", 'Bearer realm="cardsync", error="invalid_token"'),
        (KEY, 'Bearer realm="cardsync", error="invalid_token"'),
        (f"Bearer {KEY[:-1]}", 'Bearer realm="cardsync", error="invalid_token"'),
    ],
)
def test_the_challenge_names_an_error_only_when_something_was_sent(header, challenge):
    with pytest.raises(errors.Unauthorized) as refused:
        bearer(header)
    assert refused.value.headers == {"WWW-Authenticate": challenge}

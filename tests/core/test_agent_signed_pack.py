"""A signed workflow pack is believed if a pinned key signed it as a pack and it is the wanted one;
everything else is refused with its reason.
"""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from cardsync.agents.releases.signing import PACK_DOMAIN, canonical, public_key_of
from cardsync_agent import signed_release
from cardsync_agent.client import Offer
from cardsync_agent.signed_release import Untrusted
from cardsync_agent.workflow import signed_pack
from cardsync_agent.workflow.signed_pack import MOST_FILE_BYTES, VERBS, Wanted, trusted
from packs_builder import LOCALE, MARKET, ORIGIN, a_pack, a_step, of_step, signed

SIGNER, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
KEYS = [signed_release.read_key(public_key_of(SIGNER))]
SIGN_IN = "https://sign-in.example"
WANTED = Wanted(MARKET, LOCALE, frozenset({ORIGIN}), frozenset({SIGN_IN}))


def test_server_and_agent_sign_in_the_same_domain():
    assert signed_pack.DOMAIN == PACK_DOMAIN


def test_what_a_pinned_key_signed_is_the_pack():
    pack = trusted(signed(a_pack(7), SIGNER), KEYS, WANTED)
    assert (pack.marketplace, pack.locale, pack.version) == (MARKET, LOCALE, 7)
    assert pack.elements["export"].locators[0].name == "Exporter – tout"


def test_a_pack_may_wait_where_the_agents_own_pack_waits():
    pack = trusted(signed(a_pack(sign_in_origins=[SIGN_IN, ORIGIN]), SIGNER), KEYS, WANTED)
    assert pack.sign_in_origins == (SIGN_IN, ORIGIN)


def test_one_of_several_pinned_keys_is_enough():
    both = [signed_release.read_key(public_key_of(STRANGER)), *KEYS]
    assert trusted(signed(a_pack(), SIGNER), both, WANTED).version == 1


def test_white_space_and_the_order_of_names_are_not_signed():
    file = json.loads(signed(a_pack(), SIGNER))
    file["pack"] = dict(reversed(file["pack"].items()))
    assert trusted(json.dumps(file, indent=4).encode(), KEYS, WANTED).version == 1


def file_of(**parts: object) -> bytes:
    return json.dumps(json.loads(signed(a_pack(), SIGNER)) | parts).encode()


REFUSED = {
    "no key": (signed(a_pack(), SIGNER), [], "no key is pinned"),
    "a stranger's": (signed(a_pack(), STRANGER), KEYS, "no pinned key has signed it"),
    "another version": (file_of(pack=a_pack(2)), KEYS, "no pinned key has signed it"),
    "a release's": (signed(a_pack(), SIGNER, domain=b""), KEYS, "no pinned key has signed it"),
    "another domain": (
        signed(a_pack(), SIGNER, domain=b"cardsync workflow pack v2\n"),
        KEYS,
        "no pinned key has signed it",
    ),
    "no base64": (file_of(signature="no signature"), KEYS, "no pinned key has signed it"),
    "an empty signature": (file_of(signature=""), KEYS, "no pinned key has signed it"),
    "no JSON": (b"<html>", KEYS, "it cannot be read"),
    "no UTF-8": (b'{"pack": "\xff"}', KEYS, "it cannot be read"),
    "no object": (b"[]", KEYS, "it cannot be read"),
    "no signature": (json.dumps({"pack": a_pack()}).encode(), KEYS, "it cannot be read"),
    "a signature that is none": (file_of(signature=7), KEYS, "it cannot be read"),
    "a pack that is none": (file_of(pack="pack"), KEYS, "it cannot be read"),
    "too deep": (b"[" * 100_000, KEYS, "it cannot be read"),
    "half a character": (file_of(pack=a_pack(home="\ud800")), KEYS, "no text"),
    "too large": (b" " * (MOST_FILE_BYTES + 1), KEYS, "has more than"),
    "an unknown verb": (
        signed(of_step(a_step("evaluate", script="alert(1)")), SIGNER),
        KEYS,
        "steps that this sync app does not know (evaluate); update the sync app",
    ),
    "no verb": (signed(of_step({"name": "x", "then": {"url": "/"}}), SIGNER), KEYS, "verb"),
    "an unknown field": (signed(a_pack(script="x"), SIGNER), KEYS, "cannot be read"),
    "another format": (signed(a_pack(format=2), SIGNER), KEYS, "cannot be read"),
    "an element that it lacks": (signed(a_pack(elements={}), SIGNER), KEYS, "no element export"),
    "too large a pack": (
        signed(a_pack(product_lines=["x" * 500] * 1_100), SIGNER),
        KEYS,
        "more than 500,000 bytes",
    ),
    "another marketplace": (
        signed(a_pack(marketplace="other"), SIGNER),
        KEYS,
        "it is for other, not for test_market",
    ),
    "another locale": (signed(a_pack(locale="de"), SIGNER), KEYS, "pages in de, not in en"),
    "a foreign origin": (
        signed(a_pack(origins=[ORIGIN, "https://evil.example"]), SIGNER),
        KEYS,
        "it leads to https://evil.example, which is not allowed here",
    ),
    "a foreign sign-in": (
        signed(a_pack(sign_in_origins=["https://evil.example"]), SIGNER),
        KEYS,
        "it leads to https://evil.example, which is not allowed here",
    ),
    "work at a sign-in's site": (
        signed(a_pack(origins=[ORIGIN, SIGN_IN]), SIGNER),
        KEYS,
        f"it leads to {SIGN_IN}, which is not allowed here",
    ),
    "a path to another host": (
        signed(of_step(a_step("goto", path="//evil.example/x")), SIGNER),
        KEYS,
        "cannot be read",
    ),
    "a home elsewhere": (signed(a_pack(home="https://evil.example"), SIGNER), KEYS, "$.home"),
    "the plain scheme": (
        signed(a_pack(origins=["http://market.example"]), SIGNER),
        KEYS,
        "it leads to http://market.example",
    ),
}


@pytest.mark.parametrize(("content", "keys", "reason"), REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused_with_its_reason(content, keys, reason):
    with pytest.raises(Untrusted) as refused:
        trusted(content, keys, WANTED)
    assert reason in str(refused.value)


def test_a_packs_signature_passes_for_no_release():
    """Neither for its record nor for its bytes."""
    file = json.loads(signed(a_pack(), SIGNER))
    offer = Offer(record=file["pack"], record_signature=file["signature"])
    with pytest.raises(Untrusted, match="no pinned key has signed its record"):
        signed_release.trusted(offer, KEYS, "0.1", "linux/amd64", None)
    content = canonical(file["pack"])
    assert not signed_release.is_signed(KEYS, file["signature"], content)


def test_the_verbs_are_those_of_the_form():
    assert {"goto", "expect", "click", "fill", "choose", "upload", "download", "wait",
            "screenshot", "human"} == VERBS  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["workflows", "elements", "origins", "x"]), JSON))
def test_a_signed_pack_of_any_form_is_read_or_refused(changes):
    try:
        content = signed(a_pack() | changes, SIGNER)
    except UnicodeEncodeError:
        return
    try:
        pack = trusted(content, KEYS, WANTED)
    except Untrusted:
        return
    assert set(pack.origins) <= WANTED.origins


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_nothing(place, change):
    content = bytearray(signed(a_pack(), SIGNER))
    content[place % len(content)] ^= change
    try:
        pack = trusted(bytes(content), KEYS, WANTED)
    except Untrusted:
        return
    assert pack == trusted(signed(a_pack(), SIGNER), KEYS, WANTED)


def test_a_signature_of_other_bytes_is_refused():
    ours = json.loads(signed(a_pack(), SIGNER))
    other = base64.b64encode(bytes(64)).decode()
    with pytest.raises(Untrusted):
        trusted(json.dumps(ours | {"signature": other}).encode(), KEYS, WANTED)

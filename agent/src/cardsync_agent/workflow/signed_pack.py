"""Checks a signed workflow pack against the pinned keys: returns the Pack that a pinned key signed,
or raises Untrusted with the reason. Pure.

The signature covers the prefix DOMAIN and the pack's canonical JSON, so that no signature is valid
both for a release and for a pack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cardsync_agent.signed_release import Untrusted, canonical, is_signed
from cardsync_agent.workflow.pack import MOST_BYTES, BadPack, Pack, Step, read

DOMAIN: Final = b"cardsync workflow pack v1\n"
# A file also contains white space, which is not signed, and the signature.
MOST_FILE_BYTES: Final = 2 * MOST_BYTES
VERBS: Final = frozenset(
    str(info.tag)
    for info in map(msgspec.inspect.type_info, get_args(Step))
    if isinstance(info, msgspec.inspect.StructType)
)


@dataclass(frozen=True)
class Wanted:
    """The marketplace and the locale that the agent works with, and the origins that its
    configuration allows: a pack cannot send the browser elsewhere. On `sign_in_origins` a pack may
    only make the agent wait.
    """

    marketplace: str
    locale: str
    origins: frozenset[str]
    sign_in_origins: frozenset[str] = frozenset()


def trusted(content: bytes, keys: Sequence[Ed25519PublicKey], wanted: Wanted) -> Pack:
    """Return the pack of a signed file, if a pinned key signed it and it is the wanted pack."""
    if not keys:
        raise Untrusted("no key is pinned here that could have signed it")
    document, signature = _parts(content)
    # The signature is checked first, over exactly the bytes that are read afterwards.
    data = canonical(document)
    if not is_signed(keys, signature, DOMAIN + data):
        raise Untrusted("no pinned key has signed it")
    try:
        pack = read(data)
    except BadPack as problem:
        unknown = sorted(set(_verbs(document)) - VERBS)
        raise Untrusted(_needs_newer(unknown) if unknown else str(problem)) from None
    _check(pack, wanted)
    return pack


def _check(pack: Pack, wanted: Wanted) -> None:
    if pack.marketplace != wanted.marketplace:
        raise Untrusted(f"it is for {pack.marketplace}, not for {wanted.marketplace}")
    if pack.locale != wanted.locale:
        raise Untrusted(f"it is for pages in {pack.locale}, not in {wanted.locale}")
    foreign = set(pack.origins) - wanted.origins
    foreign |= set(pack.sign_in_origins) - wanted.origins - wanted.sign_in_origins
    if foreign:
        raise Untrusted(f"it leads to {', '.join(sorted(foreign))}, which is not allowed here")


def _parts(content: bytes) -> tuple[dict[str, Any], str]:
    if len(content) > MOST_FILE_BYTES:
        raise Untrusted(f"it has more than {MOST_FILE_BYTES:,} bytes")
    try:
        file = json.loads(content)
        document, signature = file["pack"], file["signature"]
    except (ValueError, TypeError, KeyError, RecursionError) as trouble:
        raise Untrusted(f"it cannot be read ({type(trouble).__name__})") from None
    if not isinstance(document, dict) or not isinstance(signature, str):
        raise Untrusted("it cannot be read (it is no pack with a signature)")
    return document, signature


def _verbs(document: dict[str, Any]) -> Iterator[str]:
    """Yield the verbs of a pack that was not validated yet."""
    workflows = document.get("workflows")
    for workflow in workflows.values() if isinstance(workflows, dict) else ():
        steps = workflow.get("steps") if isinstance(workflow, dict) else None
        for step in steps if isinstance(steps, list) else ():
            verb = step.get("verb") if isinstance(step, dict) else None
            if isinstance(verb, str):
                yield verb


def _needs_newer(verbs: list[str]) -> str:
    return (
        f"it has steps that this sync app does not know ({', '.join(verbs)}); update the sync app"
    )

"""The shared parts of pages with forms: a request's fields, redirects, and refusals as pages.

No page's form needs a script; its CSRF token is a field.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qs

from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie

from cardsync.platform import errors
from cardsync.web import pages
from cardsync.web.pages import page
from cardsync.web.request import need_storable

AnyRequest = Request[Any, Any, Any]
HEADINGS = {
    403: "Not allowed",
    404: "This link is no longer valid",
    429: "Too many attempts",
    503: "One moment, please",
}
FIELDS = 20
# `rule.query: …`, `ids[1]: …` and `price: …` name a field of the API.
_OF_FIELD: Final = re.compile(
    r"(?:[a-z_]+(?:\[\d+\])?\.)*(?P<name>[a-z][a-z_]*(?: [a-z_]+){0,2})(?:\[\d+\])?: (?P<why>.+)",
    re.DOTALL,
)
_WORDS: Final = {
    "refund amt": "refund amount",
    "starts": "the start", "starts at": "the start", "ends": "the end", "ends at": "the end",
}  # fmt: skip
_PREDICATE: Final = re.compile(r"(must|is|are|has|can|cannot|needs|takes)\b")


def go(path: str, cookie: Cookie | None = None) -> Response[str]:
    headers = pages.HEADERS | {"Location": path}
    return Response(
        "",
        status_code=303,
        media_type=MediaType.TEXT,
        headers=headers,
        cookies=[cookie] if cookie else [],
    )


def refused(request: AnyRequest, exc: errors.Problem) -> Response[Any]:
    """Answer a refusal that a page's own form does not show beside its fields."""
    if isinstance(exc, errors.Unauthorized):
        return go("/sign-in")
    heading = HEADINGS.get(exc.status, "That did not work")
    return page("message.html", exc.status, exc.headers, heading=heading, message=sentence(exc))


def sentence(problem: errors.Problem) -> str:
    """Return the refusal as a sentence for people: it begins with the thing, not with the path of
    its field.
    """
    text = str(problem)
    if found := _OF_FIELD.match(text):
        text = _of_field(found["name"].replace("_", " ").removesuffix(" bp"), found["why"])
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def _of_field(name: str, why: str) -> str:
    name = _WORDS.get(name, name)
    if name in ("query", "search"):
        return why
    if why.startswith("must be an amount"):
        return f"enter {'an' if name[0] in 'aeiou' else 'a'} {name}, like 1.25"
    if _PREDICATE.match(why):
        return f"{name} {why}"
    return f"{name}: {why}"


async def form_of(request: AnyRequest) -> dict[str, str]:
    """Raises BadRequest, InvalidPayload."""
    fields = await fields_of(request, FIELDS)
    return {name: values[0] for name, values in fields.items()}


async def fields_of(request: AnyRequest, most: int) -> dict[str, list[str]]:
    """Return a form's fields, each with all its values. Raises BadRequest, InvalidPayload."""
    try:
        fields = parse_qs(
            (await request.body()).decode(),
            keep_blank_values=True,
            max_num_fields=most,
        )
    except ValueError as e:
        raise errors.BadRequest("the form could not be read") from e
    for name, values in fields.items():
        for value in values:
            need_storable(value, name)
    return fields

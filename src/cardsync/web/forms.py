"""The shared parts of pages with forms: a request's fields, redirects, and error pages.

A form works without a script; its CSRF token is one of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from litestar import MediaType, Response, post
from litestar.datastructures import Cookie, UploadFile
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler

from cardsync.platform import errors
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.web import pages
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse, media_type, need_storable

HEADINGS = {
    403: "Not allowed",
    404: "This link is no longer valid",
    429: "Too many attempts",
    503: "One moment, please",
}
FIELDS: Final = 2_000
TOKEN: Final = "csrf_token"  # noqa: S105 (the name of a field)
# An error's text that begins with a field of the API: `rule.query: …`, `ids[1]: …` or `price: …`.
_OF_FIELD: Final = re.compile(
    r"(?:[a-z_]+(?:\[\d+\])?\.)*(?P<name>[a-z][a-z_]*(?: [a-z_]+){0,2})(?:\[\d+\])?: (?P<why>.+)",
    re.DOTALL,
)
_WORDS: Final = {
    "refund amt": "refund amount",
    "starts": "the start", "starts at": "the start", "ends": "the end", "ends at": "the end",
}  # fmt: skip
_PREDICATE: Final = re.compile(r"(must|is|are|has|can|cannot|needs|takes)\b")


@dataclass(frozen=True)
class Form:
    """The fields of a form, and its file. A field that was sent several times has its last value
    here; a missing field is empty.
    """

    sent: Mapping[str, list[str]]
    file: UploadFile | None = None

    def __getitem__(self, name: str) -> str:
        return self.sent[name][-1].strip() if self.sent.get(name) else ""

    def __contains__(self, name: str) -> bool:
        return name in self.sent

    def __iter__(self) -> Iterator[str]:
        return iter(self.sent)

    def password(self) -> str:
        """Return the typed password with its spaces."""
        return (self.all("password") or [""])[-1]

    def all(self, name: str) -> list[str]:
        return self.sent.get(name, [])

    def some(self, *names: str) -> dict[str, str]:
        return {name: self[name] for name in names}

    def again(self, without: str) -> list[tuple[str, str]]:
        """Return the form's fields, except the token and the field `without`."""
        return [
            (name, value)
            for name, values in self.sent.items()
            if name not in (TOKEN, without)
            for value in values
        ]


def go(path: str, cookie: Cookie | None = None) -> Response[str]:
    headers = pages.HEADERS | {"Location": path}
    return Response(
        "",
        status_code=303,
        media_type=MediaType.TEXT,
        headers=headers,
        cookies=[cookie] if cookie else [],
    )


def refused(request: AnyRequest, exc: errors.Problem) -> AnyResponse:
    """Render an error that the page's form does not show beside its fields."""
    if isinstance(exc, errors.Unauthorized):
        return go("/sign-in")
    heading = HEADINGS.get(exc.status, "That did not work")
    return page("message.html", exc.status, exc.headers, heading=heading, message=sentence(exc))


def sentence(problem: errors.Problem) -> str:
    """Return the error as a sentence for people. It begins with the name of the thing instead of
    the field's path.
    """
    text = str(problem)
    if found := _OF_FIELD.match(text):
        text = _of_field(found["name"].replace("_", " ").removesuffix(" bp"), found["why"])
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def field_of(problem: errors.Problem) -> str:
    """Return the name of the field that the error is about; empty if it is about no field."""
    found = _OF_FIELD.match(str(problem))
    return found["name"] if found else ""


def _of_field(name: str, why: str) -> str:
    name = _WORDS.get(name, name)
    if name in ("query", "search"):
        return why
    if why.startswith("must be an amount"):
        return f"enter {'an' if name[0] in 'aeiou' else 'a'} {name}, like 1.25"
    if _PREDICATE.match(why):
        return f"{name} {why}"
    return f"{name}: {why}"


async def sent_form(request: AnyRequest) -> Form:
    """Return a request's form without checking its token. Raises BadRequest, InvalidPayload."""
    file = None
    if media_type(request.headers) == "multipart/form-data":
        sent = await request.form()
        fields = {name: [str(value) for value in sent.getall(name)] for name in sent}
        file = sent.get("file")
    else:
        try:
            text = (await request.body()).decode()
            fields = parse_qs(text, keep_blank_values=True, max_num_fields=FIELDS)
        except ValueError as e:
            raise errors.BadRequest("the form could not be read") from e
    for name, values in fields.items():
        for value in values:
            need_storable(value, name)
    return Form(fields, file if isinstance(file, UploadFile) else None)


FORM: Final = ScopeValue[Form]("form")


async def keep_form(request: AnyRequest) -> None:
    """Read and store the form before a transaction is opened, because its sender may be slow."""
    FORM.put(request.scope, await sent_form(request))


def read_form(request: AnyRequest) -> Form:
    """Return the request's form; an empty form if it has none."""
    return FORM.find(request.scope) or Form({})


def public_form(
    path: str | list[str],
    before_request: Any = keep_form,
    dependencies: Mapping[str, Provide] | None = None,
    **given: Any,
) -> Callable[[Callable[..., object]], HTTPRouteHandler]:
    """Make a function the handler of a form, which is its parameter `form`. The form's token is not
    checked.
    """
    form = {"form": Provide(read_form, sync_to_thread=False)}
    named = {**form, **(dependencies or {})}
    return post(path, before_request=before_request, dependencies=named, **given)

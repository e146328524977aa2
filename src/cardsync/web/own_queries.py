"""Describes the query of a route that parses its query itself, so that an invalid value gets the
service's own error.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar.openapi.spec import OpenAPIType, Parameter, Schema
from litestar.params import QueryParameter

from cardsync.platform import limits

PageNumber = Annotated[
    str | None,
    QueryParameter(name="page", description="Beyond the last page there is nothing"),
]
PerPage = Annotated[
    str | None,
    QueryParameter(
        name="per_page",
        description=f"{limits.CARDS_PER_PAGE} by default, at most {limits.CARDS_PER_PAGE_MOST}",
    ),
]


TEXT = Schema(type=OpenAPIType.STRING)
TEXTS = Schema(type=OpenAPIType.ARRAY, items=TEXT)


def words(*words: str) -> Schema:
    return Schema(type=OpenAPIType.STRING, enum=list(words))


def described(parameters: dict[str, tuple[str, Schema]]) -> list[Any]:
    """Return the parameters as OpenAPI objects, each with its description and its type."""
    return [
        Parameter(
            name=name,
            param_in="query",
            required=False,
            description=description,
            schema=schema,
        )
        for name, (description, schema) in parameters.items()
    ]

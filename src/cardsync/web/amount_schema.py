"""Describes an amount of money in a body for openapi.json."""

from __future__ import annotations

from typing import Any, Final

from litestar._openapi.schema_generation import SchemaCreator
from litestar.openapi.spec import OpenAPIType, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from cardsync.read_json import Amount

_MOST: Final = 99_999_999
_FORMS: Final = [
    Schema(type=OpenAPIType.STRING, pattern=r"^[+-]?[0-9]{1,8}(\.[0-9]{1,4})?$"),
    Schema(type=OpenAPIType.NUMBER, minimum=-_MOST, maximum=_MOST),
]


class AmountSchema(OpenAPISchemaPlugin):
    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        return value is Amount

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: SchemaCreator
    ) -> Schema:
        return Schema(one_of=_FORMS, description='US dollars, like "12.50"')

"""Describes the fields of structs to OpenAPI. A description is the sentence under the field's
declaration, or a shared sentence for a name that means the same in every struct, or a `Like`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from decimal import Decimal
from functools import cache
from typing import TypeVar, get_args, get_type_hints

import msgspec
from litestar._openapi.schema_generation import SchemaCreator
from litestar.openapi.spec import Reference, Schema
from litestar.openapi.spec.enums import OpenAPIFormat, OpenAPIType
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from cardsync.platform.described import DECIMAL, WORDS_OF_FIELDS, Like
from cardsync.platform.read_json import like_of
from cardsync.web.field_words import MOMENTS, WORDS

T = TypeVar("T")


class DescribedFields(OpenAPISchemaPlugin):
    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        return bool(
            _like(field_definition)
            or _words(field_definition)
            or _of(field_definition, msgspec.Meta)
            or _is_struct(field_definition)
            or field_definition.annotation is Decimal
        )

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: SchemaCreator
    ) -> Schema:
        if like := _like(field_definition):
            made = schema_creator.for_field_definition(FieldDefinition.from_annotation(like.type))
            return Schema(all_of=[made], required=list(like.needs)) if like.needs else made  # type: ignore[return-value]
        if meta := _of(field_definition, msgspec.Meta):
            plain = FieldDefinition.from_annotation(field_definition.annotation)
            return _bound(schema_creator.for_field_definition(plain), meta)
        if words := _words(field_definition):
            _, inner = field_definition.inner_types
            return Schema(
                type=OpenAPIType.OBJECT,
                property_names=Schema(enum=list(words)),
                additional_properties=schema_creator.for_field_definition(inner),
            )
        if field_definition.annotation is Decimal:
            return Schema(type=OpenAPIType.STRING, pattern=DECIMAL)
        for plugin in schema_creator.plugins:
            if plugin is not self and schema_creator.plugin_supports_field(
                plugin, field_definition
            ):
                schema = plugin.to_openapi_schema(field_definition, schema_creator)
                break
        _describe(field_definition.annotation, schema)
        return schema


def _of(field: FieldDefinition, kind: type[T]) -> T | None:
    return next((one for one in field.metadata if isinstance(one, kind)), None)


def _like(field: FieldDefinition) -> Like | None:
    """Return the description of a field whose value the service's own code parses."""
    return _of(field, Like) or like_of(field.annotation)


def _bound(schema: Schema | Reference, meta: msgspec.Meta) -> Schema:
    """Set the bounds that msgspec enforces. Litestar sets the bounds only if they apply to the
    whole field.
    """
    assert isinstance(schema, Schema)
    many = schema.type is OpenAPIType.ARRAY
    for name, value in (
        ("minimum", meta.ge),
        ("maximum", meta.le),
        ("exclusive_minimum", meta.gt),
        ("exclusive_maximum", meta.lt),
        ("min_items" if many else "min_length", meta.min_length),
        ("max_items" if many else "max_length", meta.max_length),
        ("pattern", meta.pattern),
    ):
        if value is not None:
            setattr(schema, name, value)
    return schema


def _words(field: FieldDefinition) -> tuple[str, ...]:
    """Return the keys of a mapping whose key type is a Literal."""
    keys = field.inner_types[0] if field.is_mapping and field.inner_types else None
    return get_args(keys.annotation) if keys and keys.is_literal else ()


def _is_struct(field: FieldDefinition) -> bool:
    return not field.is_union and field.is_subclass_of(msgspec.Struct)


def _describe(struct: type[msgspec.Struct], schema: Schema) -> None:
    own = dict(sentences(struct))
    if struct.__struct_config__.forbid_unknown_fields:
        schema.additional_properties = False
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        like = _of(FieldDefinition.from_annotation(hints[field.name]), Like)
        if like and like.needed:
            schema.required = sorted([*(schema.required or []), field.encode_name])
        if field.name in own:
            own[field.encode_name] = own[field.name]
    for name, one in (schema.properties or {}).items():
        one.description = own.get(name) or one.description or WORDS.get(name)
        if isinstance(one, Schema) and (name.endswith("_at") or name in MOMENTS):
            for form in (one, *(one.one_of or [])):
                if isinstance(form, Schema) and form.type is OpenAPIType.STRING and not form.format:
                    form.format = OpenAPIFormat.DATE_TIME


@cache
def sentences(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the sentence under the declaration of each field of a struct."""
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        found |= vars(base).get(WORDS_OF_FIELDS, {})
        try:
            [body] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError):
            # A struct that was made without a class statement has no source.
            continue
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = " ".join(said.split())
    return found

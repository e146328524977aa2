"""Reads all parameters and the body of a request before it opens any dependency.

Litestar opens a dependency that holds a slot, a connection or a transaction before it has read all
parameters, and closes it only after reading them all. A parameter that cannot be read would leave
the dependency open forever. `ParametersFirst` converts everything that the client sent first. It
closes each opened dependency, however the request ends, also after an error or a disconnect.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
from litestar import Litestar
from litestar._kwargs import KwargsModel
from litestar._kwargs.dependencies import DependencyContainer
from litestar._signature import SignatureModel
from litestar.connection import ASGIConnection
from litestar.constants import RESERVED_KWARGS
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Empty

_SENT_BY_CLIENTS = {"data"}
_PUT_IN_BY_US = set(RESERVED_KWARGS) - _SENT_BY_CLIENTS


def read_parameters_first(app: Litestar) -> None:
    """Change every route whose dependencies hold something, so that its parameters are
    read first.
    """
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, model) in route.route_handler_map.items():
                if _holds_something(model):
                    route.route_handler_map[method] = (handler, ParametersFirst(handler, model))


def shapes_of(handler: HTTPRouteHandler, model: KwargsModel) -> dict[str, tuple[Any, Any]]:
    """Return the field of Litestar's signature and the annotation of each value that a client sends
    for a route, by name. The values are the parameters of the handler and of its dependencies, and
    the body (`data`).
    """
    providers = [each.provide for batch in model.dependency_batches for each in batch]
    signatures = [handler.signature_model, *(each.signature_model for each in providers)]
    shapes: dict[str, tuple[object, object]] = {}
    for signature in signatures:
        for name, field in signature._fields.items():
            if name in signature._dependency_name_set or name in _PUT_IN_BY_US:
                continue
            shape = (field, signature.__annotations__[name])
            if shapes.setdefault(name, shape)[1] != shape[1]:
                raise TypeError(f"{handler}: {name} is read in two ways")
    return shapes


class ParametersFirst(KwargsModel):
    """Litestar's model of a route's arguments, changed to read all parameters before it opens a
    dependency.
    """

    __slots__ = ("_sent",)

    def __init__(self, handler: HTTPRouteHandler, model: KwargsModel) -> None:
        for slot in KwargsModel.__slots__:
            setattr(self, slot, getattr(model, slot))
        shapes = shapes_of(handler, model)
        self._sent: type[SignatureModel] = msgspec.defstruct(  # type: ignore[assignment]
            "Sent",
            # The default only makes the value optional; Litestar fills in the actual default later.
            [
                (name, annotation, None if field.has_default else msgspec.NODEFAULT)
                for name, (field, annotation) in shapes.items()
            ],
            bases=(SignatureModel,),
            namespace={
                "_fields": {name: field for name, (field, _) in shapes.items()},
                "_dependency_name_set": set(),
                "_headers_from_connection": False,
                "_data_dto": None,
            },
            kw_only=True,
        )

    async def to_kwargs(self, connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, object]:
        """Return the converted values that the client sent. Raises ValidationException."""
        given = await super().to_kwargs(connection)
        names = self._sent.__struct_fields__
        sent = {name: given[name] for name in names if given.get(name, Empty) is not Empty}
        read = self._sent.parse_values_from_connection_kwargs(connection, sent)
        given.update((name, read[name]) for name in sent)
        return given

    async def resolve_dependencies(  # type: ignore[override]
        self, connection: ASGIConnection[Any, Any, Any, Any], kwargs: dict[str, Any]
    ) -> AsyncExitStack:
        """Open the dependencies one after the other, and return the stack that closes them."""
        async with AsyncExitStack() as held:
            for batch in self.dependency_batches:
                for dependency in batch:
                    await _resolve(dependency, connection, kwargs, held)
            return held.pop_all()


async def _resolve(
    dependency: DependencyContainer,
    connection: ASGIConnection[Any, Any, Any, Any],
    kwargs: dict[str, object],
    held: AsyncExitStack,
) -> None:
    provide = dependency.provide
    needs = provide.signature_model.parse_values_from_connection_kwargs(connection, kwargs)
    value = await provide(**needs)
    if provide.has_async_generator_dependency:
        generator = value
        value = await held.enter_async_context(asynccontextmanager(lambda: generator)())
    kwargs[dependency.key] = value


def _holds_something(model: KwargsModel) -> bool:
    providers = [each.provide for batch in model.dependency_batches for each in batch]
    assert not any(provide.has_sync_generator_dependency for provide in providers)
    return any(provide.has_async_generator_dependency for provide in providers)

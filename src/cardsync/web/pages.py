"""The shared parts of every page: the environment that renders templates, and the headers of pages.

The frame and the failure page are in `web/templates`. A package with pages has its own `templates`
folder, and its name is an argument of the function `templates` below.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final
from urllib.parse import quote

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    PackageLoader,
    StrictUndefined,
    nodes,
)
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, Macro
from litestar import Litestar, MediaType, Response
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.response import Template
from litestar.template.config import TemplateConfig
from markupsafe import Markup, escape

from cardsync.platform.version import __version__
from cardsync.web.request import AnyRequest

# The policy allows no script, no frame and no other site, and no cache stores a member's page. The
# referrer policy hides the token in an invitation's address from other sites, but lets our own
# forms send their origin.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Context(Context):
    """A context that calls macros, methods and functions directly. Jinja asks before each of the
    3,000 calls of a table whether the called object wants the context, which takes as long as half
    of the calls.
    """

    def call(self, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        kind = type(called)
        if kind is Macro or kind is BuiltinMethodType or (kind in _PLAIN and _wants_none(called)):
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return called(*args, **kwargs)
        return super().call(called, *args, **kwargs)


class _Generator(CodeGenerator):
    """A compiler whose templates escape by `_escaped`."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.autoescape and not frame.eval_ctx.volatile:
            self.write("environment.escaped(")
            if finalize.src is not None:
                self.write(finalize.src)
        else:
            super()._output_child_pre(node, frame, finalize)


def _escaped(value: object) -> str:
    """Escape a value of a template. A third of a page's values are the markup of macros and
    functions, which `escape` would copy.
    """
    return value if type(value) is Markup else escape(value)


_PLAIN = (MethodType, FunctionType)


def _wants_none(called: Any) -> bool:
    """Return whether a function or method takes nothing of the context (`jinja2.pass_context`)."""
    return not hasattr(called, "jinja_pass_arg")


def templates(
    *packages: str,
    asset: Callable[[str], str | None],
    sprite: Callable[[], Markup],
) -> TemplateConfig[JinjaTemplateEngine]:
    """Return Litestar's template engine for the `templates` folders of cardsync.web and of these
    packages.

    Every value is escaped, and an undefined name in a template raises an error. In templates,
    `asset` returns the address of a style sheet, script or picture, and `sprite` the symbols of all
    icons.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in ("cardsync.web", *packages)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.context_class = _Context
    environment.code_generator_class = _Generator
    environment.extend(escaped=_escaped)
    environment.globals["asset"] = asset
    environment.globals["sprite"] = sprite
    return TemplateConfig(instance=JinjaTemplateEngine.from_environment(environment))


class CompiledTemplates(FileSystemBytecodeCache):
    """The templates that an earlier process compiled: to read all of them takes 0.07 s instead of
    the 2 s that compiling takes. A folder that cannot be written and a damaged file are no failure.
    """

    _MADE_BY: Final = f"{__version__} {version('jinja2')} "

    def get_source_checksum(self, source: str) -> str:
        """Return a checksum that differs for each version of the program."""
        return super().get_source_checksum(self._MADE_BY + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def compile_all(app: Litestar, folder: Path) -> None:
    """Compile every template whose compiled form is not in the folder. A page that compiles its own
    takes up to 0.3 s longer.
    """
    assert isinstance(app.template_engine, JinjaTemplateEngine)
    environment = app.template_engine.engine
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    environment.bytecode_cache = CompiledTemplates(str(folder))
    for name in environment.list_templates():
        environment.get_template(name)


def page(
    template: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
    /,
    **values: object,
) -> Template:
    return Template(
        template,
        context=values,
        status_code=status,
        media_type=MediaType.HTML,
        headers=HEADERS | (headers or {}),
    )


def to_sign_in(request: AnyRequest, _: Exception) -> Response[str]:
    """Send a reader who is not signed in to the sign-in page, which then leads back to
    this page.
    """
    query = f"?{request.url.query}" if request.url.query else ""
    back = quote(f"{request.url.path}{query}", safe="/")
    where = f"/sign-in?next={back}" if request.method == "GET" else "/sign-in"
    return Response(
        "", status_code=303, media_type=MediaType.TEXT, headers=HEADERS | {"Location": where}
    )

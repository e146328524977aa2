"""Draws the pages of the three designs from the templates in designs/, and takes marks out. Pure.

In a template `mark="name"` marks the element that a pack knows by this name, so that a test can
say which one is right; no visitor ever gets a mark.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from selectolax.lexbor import LexborHTMLParser

DESIGNS = {1: "one.html", 2: "two.html", 3: "three.html"}
_MARK = re.compile(r' mark="[^"]*"')


@lru_cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "designs"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def drawn(design: int, name: str, removed: set[str], shown: dict[str, Any]) -> str:
    """A page with its marks; elements whose marks are in `removed` are not on it."""
    page = _templates().get_template(DESIGNS[design]).render(show=name, **shown)
    if not removed:
        return page
    tree = LexborHTMLParser(page)
    for mark in removed:
        for node in tree.css(f'[mark="{mark}"]'):
            node.decompose()
    return tree.html or ""


def unmarked(page: str) -> str:
    return _MARK.sub("", page)

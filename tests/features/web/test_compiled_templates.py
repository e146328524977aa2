"""A web process compiles its templates when it starts, so that no reader waits for it, and the next
process finds them compiled.
"""

from __future__ import annotations

import pytest
from jinja2 import Environment

from cardsync.web.pages import CompiledTemplates, compile_all


@pytest.fixture
def compiled(service, monkeypatch):
    """The names of the templates that were compiled, and the function that forgets those in memory."""
    names = []
    environment = service.app.template_engine.engine
    compile_one = Environment.compile

    def noted(self, source, name=None, *others, **options):
        names.append(name)
        return compile_one(self, source, name, *others, **options)

    monkeypatch.setattr(Environment, "compile", noted)
    monkeypatch.setattr(environment, "bytecode_cache", None)

    def forget():
        environment.cache.clear()
        names.clear()

    forget()
    return names, forget


async def test_every_template_is_compiled_before_a_page_asks_for_it(service, compiled, tmp_path):
    environment, (names, forget) = service.app.template_engine.engine, compiled
    every = sorted(environment.list_templates())
    compile_all(service.app, tmp_path / "templates")
    assert len(environment.cache) == len(every)
    assert sorted(names) == every

    forget()
    compile_all(service.app, tmp_path / "templates")
    assert len(environment.cache) == len(every)
    assert names == []


async def test_templates_of_another_version_are_compiled_again(
    service, compiled, tmp_path, monkeypatch
):
    names, forget = compiled
    compile_all(service.app, tmp_path / "templates")
    every = len(names)
    forget()
    monkeypatch.setattr(CompiledTemplates, "_MADE_BY", "0.0.1 3.0 ")
    compile_all(service.app, tmp_path / "templates")
    assert len(names) == every


async def test_a_damaged_file_is_compiled_again(service, compiled, tmp_path):
    names, forget = compiled
    compile_all(service.app, tmp_path)
    forget()
    for damaged in list(tmp_path.iterdir())[:3]:
        damaged.write_bytes(damaged.read_bytes()[:20])
    compile_all(service.app, tmp_path)
    assert len(names) == 3


async def test_a_folder_that_cannot_be_written_is_no_failure(service, compiled, tmp_path):
    names, _ = compiled
    compile_all(service.app, tmp_path / "away" / "templates")
    assert len(names) == len(service.app.template_engine.engine.list_templates())

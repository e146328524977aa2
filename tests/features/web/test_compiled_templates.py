"""A web process compiles its templates when it starts, so that no reader waits for it."""

from __future__ import annotations

from cardsync.web.pages import compile_all


async def test_every_template_is_compiled_before_a_page_asks_for_it(service):
    app = service.app
    environment = app.template_engine.engine
    compile_all(app)
    assert len(environment.cache) == len(environment.list_templates())

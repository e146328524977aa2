"""The interface description: generated from the routes, in git as openapi.json, compared in CI."""

from __future__ import annotations

import json

from cardsync.asgi import create_app
from cardsync.settings import Settings


def document() -> str:
    schema = create_app(Settings(database_url="postgresql:///")).openapi_schema.to_schema()
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

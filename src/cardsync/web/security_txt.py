"""Serves /.well-known/security.txt (RFC 9116), which says where to report a vulnerability of this
installation.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from litestar import MediaType, Response, get
from litestar.exceptions import NotFoundException

from cardsync.platform import clock
from cardsync.platform.settings import Settings

PATH: Final = "/.well-known/security.txt"
# Readers must fetch the file again after this time, so that an abandoned address is not used for
# long.
_GOOD_FOR: Final = timedelta(days=30)


@get(PATH, include_in_schema=False)
async def security_txt(settings: Settings) -> Response[str]:
    if settings.security_contact is None:
        raise NotFoundException
    expires = (clock.now() + _GOOD_FOR).replace(microsecond=0)
    lines = [
        f"Contact: {settings.security_contact}",
        f"Expires: {clock.rfc3339(expires)}",
        "Preferred-Languages: en",
        f"Canonical: {settings.origin}{PATH}",
    ]
    text = "\n".join([*lines, ""])
    return Response(text, media_type=MediaType.TEXT, headers={"Cache-Control": "max-age=86400"})

"""Defines the errors of the authorization server. Their bodies are those of OAuth (RFC 6749,
section 5.2): `{error, error_description}`.
"""

from __future__ import annotations

from typing import Literal, get_args

Code = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "invalid_target",
    "invalid_redirect_uri",
    "invalid_client_metadata",
    "unsupported_grant_type",
    "unsupported_response_type",
    "access_denied",
]
CODES = get_args(Code)


class Refused(Exception):
    """An error of the token, registration or revocation endpoint, or of an
    authorization response.
    """

    def __init__(self, error: Code, description: str) -> None:
        super().__init__(description)
        self.error = error

    @property
    def status(self) -> int:
        return 401 if self.error == "invalid_client" else 400

    def body(self) -> dict[str, str]:
        return {"error": self.error, "error_description": str(self)}


class Unverified(Exception):
    """An authorization request whose redirect address is not verified as the client's. A page shows
    the error, and the browser is not redirected.
    """

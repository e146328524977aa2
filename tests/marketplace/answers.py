"""What the simulated marketplace is asked and what it answers, apart from the network. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

_FILE_NAME = re.compile(rb'filename="([^"]*)"')
# The names that the later designs give to fields and addresses.
_FIELDS = {
    "login_email": "email", "login_pass": "password", "otp": "code", "human": "person",
    "csvUpload": "prices_file", "game": "product_line", "expansion": "set_name",
    "stock_only": "in_stock", "start": "from", "end": "to", "period": "month",
    "sku": "card_id", "grade": "condition", "qty": "quantity", "amount": "price", "skus": "ids",
}  # fmt: skip
_PATHS = {
    "/pricing/download-prices": "/pricing/export.csv",
    "/orders/download-list": "/orders/export.csv",
    "/orders/download-shipments": "/orders/shipping.csv",
    "/orders/download-picking": "/orders/pull-sheet.csv",
    "/pricing/lookup/download": "/pricing/lookup.csv",
    "/refunds/download": "/refunds/export.csv",
    "/feedback/download": "/feedback/export.csv",
    "/payments/download": "/payments/report.csv",
    "/account/download": "/account/summary.csv",
}


@dataclass(frozen=True)
class Upload:
    name: str
    content: bytes


@dataclass
class Request:
    """`path` and the names in `form` are those of the first design."""

    method: str
    path: str
    form: dict[str, str] = field(default_factory=dict)
    token: str = ""
    upload: Upload | None = None


@dataclass
class Answer:
    """`marked` is a page with the marks that truth.py reads; `body` never has them."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    marked: str = ""
    # A file that the seller downloads.
    file: str = ""


def request(method: str, target: str, token: str, type_: str = "", body: bytes = b"") -> Request:
    path, _, query = target.partition("?")
    asked = Request(method, _PATHS.get(path, path), token=token)
    pairs = parse_qsl(query, keep_blank_values=True)
    if type_.startswith("application/x-www-form-urlencoded"):
        pairs += parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    elif type_.startswith("multipart/form-data"):
        asked.upload = _upload(type_, body)
    asked.form = {_FIELDS.get(name, name): value for name, value in pairs}
    return asked


def _upload(type_: str, body: bytes) -> Upload | None:
    """The first file of a multipart body."""
    boundary = type_.partition("boundary=")[2].partition(";")[0].strip().strip('"')
    for part in body.split(b"--" + boundary.encode())[1:] if boundary else ():
        head, _, content = part.partition(b"\r\n\r\n")
        if named := _FILE_NAME.search(head):
            return Upload(named[1].decode(errors="replace"), content.removesuffix(b"\r\n"))
    return None


def redirect(to: str) -> Answer:
    return Answer(303, headers={"Location": to})


def csv_file(name: str, content: bytes) -> Answer:
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return Answer(200, content, headers, file=name)

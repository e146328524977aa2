"""Calls the server's HTTP API for the agent: each call is one method, and each method tries once
(pace.persist repeats).

A call returns a small typed answer or raises one of three exceptions: TryAgain (network, 5xx, 429),
KeyRefused (401, or a 403 of the account), Refused (any other error answer; Cooldown is a subclass).
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import msgspec

from cardsync_agent import clock
from cardsync_agent.state import Claim

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
MOST_RETRY_AFTER = 3600.0
PART_BYTES = 65_536
TurnKind = Literal["sign_in", "second_factor", "captcha", "human", "confirm_repair", "paused"]
_HOST = re.compile(r"[A-Za-z0-9.\[\]:-]{1,253}")
# A 403 with one of these codes refuses one call; any other 403 refuses the key or the account.
_CALL_CODES = frozenset({"object_store_pipeline_disabled", "invalid_signature", "url_expired"})


class TryAgain(Exception):
    """The call failed for now; it may succeed later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """The server understood the call and refused it; the same call would be refused again."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.status, self.code, self.message = status, code, message


class Cooldown(Refused):
    """The answer is 402 or 429: the seller must wait, or spend a credit.

    The message explains it in one sentence.
    """

    def __init__(
        self, status: int, seconds: int, balance: int | None, top_up_url: str | None
    ) -> None:
        text = f"the server wants {clock.span(seconds)} of rest before the next manual sync"
        if balance is not None:
            text += f"; skipping the wait costs 1 credit, your balance is {balance}"
        if top_up_url:
            text += f" (top up at {top_up_url})"
        super().__init__(status, "cooldown", text)
        self.seconds, self.balance, self.top_up_url = seconds, balance, top_up_url

    def __str__(self) -> str:
        return self.message


class KeyRefused(Refused):
    """The server does not accept the key, or the account behind it."""


@dataclass(frozen=True)
class Offer:
    """An update as the server describes it. `signed_release` decides whether to trust it."""

    version: str = ""
    url: str = ""
    signature: str = ""
    sha256: str = ""
    record: dict[str, Any] = field(default_factory=dict)
    record_signature: str = ""


@dataclass(frozen=True)
class Heartbeat:
    sync_mode: str
    upload_approved: bool = False
    force_update: bool = False
    update_available: bool = False
    latest_version: str | None = None
    offer: Offer | None = None
    has_pending_tasks: bool = False


@dataclass(frozen=True)
class PersonsTurn:
    """The reason for which the agent waits for its person. `page_host` is the host of the page that
    needs the person; the rest of the address never leaves the computer.
    """

    kind: TurnKind
    page_host: str | None = None


@dataclass(frozen=True)
class PackOffer:
    """`killed` are the versions that the operator has withdrawn. `signed` is the file of a newer
    version, or None. `workflow/signed_pack` decides whether to trust it.
    """

    killed: frozenset[int] = frozenset()
    signed: bytes | None = None


@dataclass(frozen=True)
class Decision:
    action: str
    reason: str
    sync_requested: bool = False
    kind: str = "full"
    first_sync: bool = False
    plan_steps: tuple[str, ...] | None = None
    plan_skipped: dict[str, str] = field(default_factory=dict)
    plan_error: str | None = None


@dataclass(frozen=True)
class Ticket:
    key: str
    upload_url: str


@dataclass(frozen=True)
class PriceUpdates:
    content: bytes
    rows: int
    empty_reasons: tuple[str, ...]
    etag: str | None
    # The kind is `rollback`, `quick_add` or `price_updates`; None from a server that does not send
    # the kind.
    kind: str | None = None
    # The server's entry for each row of a file of new listings.
    entries: tuple[int, ...] = ()
    # The number of a file of new listings; two files with the same number are the same file.
    number: int | None = None


@dataclass(frozen=True)
class Lost:
    """The step whose element was not found, with the surrounding part of the page."""

    workflow: str
    step_name: str
    selector: str
    page_url: str
    dom_snippet: str


@dataclass(frozen=True)
class Repair:
    """Another selector. `known` means that the selector was verified before."""

    correction_id: int
    selector: str
    known: bool


@dataclass(frozen=True)
class Gone:
    """The server has no selector, for the given reason."""

    heal_id: int | None
    reason: str


class Client:
    """A client has one connection pool. The client sends the key with each API call, never with the
    presigned PUT.
    """

    def __init__(self, server: str, key: str, transport: httpx.BaseTransport | None = None) -> None:
        self._base = httpx.URL(server.rstrip("/") + "/")
        self._auth = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._trace: dict[str, str] = {}
        self._http = httpx.Client(timeout=TIMEOUT, transport=transport)

    def trace(self, cycle_id: str | None) -> None:
        """Send the calls of this cycle as one trace, if its ID is a UUID. None ends the trace."""
        one = (cycle_id or "").replace("-", "")
        is_id = re.fullmatch("[0-9a-f]{32}", one) is not None
        self._trace = {"traceparent": f"00-{one}-{one[16:]}-01"} if is_id else {}

    def close(self) -> None:
        self._http.close()

    def heartbeat(
        self,
        version: str,
        platform: str,
        turn: PersonsTurn | msgspec.UnsetType | None = msgspec.UNSET,
    ) -> Heartbeat:
        """Report that the agent is running. `turn` is the reason for which it waits for its person,
        None if it does not wait. An agent without a browser omits `turn`, so that it does not
        change the report of another agent of the account.
        """
        report = {"version": version, "platform": platform} | _turn_fields(turn)
        body = self._json("POST", "heartbeat", json=report)
        # In any mode but `full`, the agent must not push prices.
        mode = "full" if body.get("sync_mode") == "full" else "read_only"
        latest = body.get("latest_version")
        return Heartbeat(
            mode,
            upload_approved=body.get("upload_approved") is True,
            force_update=body.get("force_update") is True,
            update_available=body.get("update_available") is True,
            latest_version=str(latest) if latest else None,
            offer=_offer(body),
            has_pending_tasks=body.get("has_pending_tasks") is True,
        )

    def pending(self, agent_id: str, capabilities: str) -> Decision:
        query = {"agent_id": agent_id, "capabilities": capabilities}
        body = self._json("GET", "sync/pending", params=query)
        plan = body.get("plan")
        plan = plan if isinstance(plan, dict) else {}
        steps, skipped = plan.get("steps"), plan.get("skipped")
        skipped = (
            [s for s in skipped if isinstance(s, dict) and "name" in s]
            if isinstance(skipped, list)
            else []
        )
        return Decision(
            action=str(body.get("action")),
            reason=str(body.get("reason")),
            sync_requested=body.get("sync_requested") is True,
            kind=str(plan.get("kind") or body.get("kind") or "full"),
            first_sync=body.get("first_sync") is True,
            plan_steps=tuple(map(str, steps)) if isinstance(steps, list) else None,
            plan_skipped={
                str(s["name"]): str(s.get("reason") or "left out by the server's plan")
                for s in skipped
            },
            plan_error=str(plan["error"]) if plan.get("error") else None,
        )

    def clear_approval(self) -> None:
        self._api("DELETE", "sync/approve_upload")

    def request_sync(self, kind: str) -> None:
        self._json("POST", "sync/request", json={"kind": kind})

    def status(self) -> dict[str, Any]:
        return self._json("GET", "status")

    def upload_request(self) -> Ticket:
        body = self._json("POST", "sync/upload-request", json={})
        if not isinstance(body.get("key"), str) or not isinstance(body.get("upload_url"), str):
            raise TryAgain("the server gave no upload address")
        return Ticket(body["key"], body["upload_url"])

    def is_elsewhere(self, upload_url: str) -> bool:
        """Return whether the upload is sent to another host than the server: that host may be
        unreachable although the server is not.
        """
        url = self._base.join(upload_url)
        return (url.host, url.port) != (self._base.host, self._base.port)

    def put_object(self, upload_url: str, content: bytes, between: Callable[[], None]) -> None:
        """Send the object. `between` is called between the parts of a long upload."""
        url = self._base.join(upload_url)
        # httpx reports such an address as a transport error, and the agent would retry forever.
        if url.scheme not in ("http", "https"):
            raise Refused(0, "bad_upload_url", f"{upload_url} is no web address")
        # The length is given, because S3 does not accept a chunked upload.
        headers = {"Content-Length": str(len(content))}
        answer = self._send(
            self._http.build_request("PUT", url, content=_parts(content, between), headers=headers)
        )
        if answer.status_code >= 300:
            raise _refusal(answer, about_the_key=False)

    def download(self, address: str, file: Path, most: int, go_on: Callable[[], bool]) -> bool:
        """Fetch the rest of `file`, from its current end; return whether the file is complete.

        The request does not contain the key, because any host may serve the file.
        """
        url = self._base.join(address)
        if url.scheme not in ("http", "https"):
            raise Refused(0, "bad_download_url", f"{address} is no web address")
        have = file.stat().st_size if file.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        request = self._http.build_request("GET", url, headers=headers)
        try:
            with closing(self._http.send(request, stream=True, follow_redirects=True)) as answer:
                return _receive(answer, file, have, most, go_on)
        except (httpx.TransportError, httpx.TooManyRedirects) as trouble:
            raise TryAgain(
                f"{_place(url)} cannot be reached ({str(trouble) or type(trouble).__name__})"
            ) from trouble

    def accept(self, key: str, sync_cycle_id: str, exported_at: str) -> int:
        body = {"key": key, "sync_cycle_id": sync_cycle_id, "exported_at": exported_at}
        return _upload_id(self._json("POST", "sync", json=body))

    def accept_raw(self, content: bytes, sync_cycle_id: str, exported_at: str) -> int:
        headers = {
            # The server would refuse plain bytes with the type application/gzip as invalid_gzip.
            "Content-Type": "application/gzip"
            if content[:2] == b"\x1f\x8b"
            else "application/octet-stream",
            "X-Sync-Cycle-Id": sync_cycle_id,
            "X-Exported-At": exported_at,
        }
        return _upload_id(self._json("POST", "sync", content=content, headers=headers))

    def upload(self, upload_id: int) -> dict[str, Any]:
        return self._json("GET", f"uploads/{upload_id}")

    def price_updates(
        self, etag: str | None, agent_id: str | None = None, has_listings: int | None = None
    ) -> PriceUpdates | None:
        """Return the export, or None for 304.

        `has_listings` is the number of the file of listings that this agent has delivered last.
        """
        said = {
            "If-None-Match": etag,
            "X-Agent-Id": agent_id,
            "X-Quick-Add-Has": None if has_listings is None else str(has_listings),
        }
        headers = {name: value for name, value in said.items() if value}
        headers["Accept"] = "text/csv, application/json;q=0.5"
        answer = self._api("GET", "export/price-updates", headers=headers)
        if answer.status_code == 304:
            return None
        rows = _count_rows(answer.content)
        if rows is None:
            raise TryAgain("what answered the download is not the server's price file")
        reasons = answer.headers.get("X-Price-Export-Empty-Reason", "")
        return PriceUpdates(
            answer.content,
            rows,
            tuple(r.strip() for r in reasons.split(",") if r.strip()),
            answer.headers.get("ETag"),
            answer.headers.get("X-Price-Export-Kind"),
            _ids(answer.headers.get("X-Quick-Add-Ids", "")),
            next(iter(_ids(answer.headers.get("X-Quick-Add-File", ""))), None),
        )

    def claim_task(self, kinds: Sequence[str]) -> Claim | None:
        """Return a task for this agent alone, or None if none waits."""
        body = self._json("POST", "tasks/claim", json={"kinds": list(kinds), "limit": 1})
        tasks = body.get("tasks")
        task = tasks[0] if isinstance(tasks, list) and tasks else None
        if not isinstance(task, dict) or task.get("kind") not in kinds:
            return None
        payload = task.get("payload")
        return Claim(
            id=int(task["id"]),
            kind=str(task["kind"]),
            claim_token=str(task["claim_token"]),
            payload=payload if isinstance(payload, dict) else {},
            attempt=int(task.get("attempt") or 0),
        )

    def end_task(self, task_id: int, outcome: dict[str, Any]) -> None:
        self._json("PATCH", f"tasks/{task_id}", json=outcome)

    def heal(self, lost: Lost, screenshot: bytes | None = None) -> Repair | Gone:
        """Request a new selector for a selector that no longer finds its element."""
        picture = (
            {} if screenshot is None else {"screenshot": base64.b64encode(screenshot).decode()}
        )
        body = self._json("POST", "workflow/heal", json=asdict(lost) | picture)
        correction = body.get("correction")
        heal_id = _whole(body.get("id"))
        if isinstance(correction, dict) and isinstance(correction.get("id"), int):
            known = body.get("status") == "cached"
            return Repair(correction["id"], str(correction.get("selector") or ""), known=known)
        # The protocol also allows `queued`: until the request is processed there is no selector.
        return Gone(heal_id, str(body.get("reason") or "the server knows no selector yet"))

    def confirm_repair(self, correction_id: int, selector: str) -> None:
        body = {"correction_id": correction_id, "selector": selector, "verified": True}
        self._json("POST", "workflow/corrections", json=body)

    def report_failed_repair(self, correction_id: int, error: str) -> None:
        path = f"workflow/corrections/{correction_id}/failure"
        self._json("POST", path, json={"error": error})

    def workflow_pack(self, marketplace: str, locale: str, have: int) -> PackOffer:
        """Ask for a workflow pack that is newer than version `have`."""
        query: dict[str, str | int] = {"locale": locale, "have": have}
        try:
            body = self._json("GET", f"workflow/packs/{quote(marketplace, safe='')}", params=query)
        except Refused as refused:
            # No pack was ever published for this marketplace, or the server is too old to have
            # packs.
            if refused.status != 404:
                raise
            return PackOffer()
        killed = body.get("killed")
        versions = map(_whole, killed if isinstance(killed, list) else ())
        pack = body.get("pack")
        signed = {"pack": pack, "signature": body.get("signature")}
        return PackOffer(
            frozenset(version for version in versions if version is not None),
            json.dumps(signed).encode() if isinstance(pack, dict) else None,
        )

    def report_prices(self, path: str, body: dict[str, Any]) -> None:
        self._json("POST", path, json=body)

    def log(self, body: dict[str, Any], agent_id: str) -> None:
        self._api("POST", "sync/log", json=body, params={"agent_id": agent_id})

    def send_rows(self, path: str, body: bytes) -> dict[str, Any]:
        """Send JSON rows of an order upload, gzip or not; the answer has the upload's ID, or the
        number of orders that the feedback matched.
        """
        packed = body[:2] == b"\x1f\x8b"
        return self._json(
            "POST",
            path,
            content=body,
            headers={"Content-Type": "application/gzip" if packed else "application/json"},
        )

    def sales_gaps(self) -> list[str]:
        """Return the first days of the months without a sales report."""
        gaps = self._json("GET", "sales_report/gaps").get("gaps")
        return [str(day)[:10] for day in gaps] if isinstance(gaps, list) else []

    def send_sales_report(self, report: dict[str, Any]) -> dict[str, Any]:
        return self._json("POST", "sales_report", json=report)

    def send_debug(
        self, sync_cycle_id: str, step_name: str, captured_at: str, shot: tuple[bytes, str]
    ) -> None:
        """Send a picture and the address of its page."""
        content, page_url = shot
        body = {
            "sync_cycle_id": sync_cycle_id, "step_name": step_name, "captured_at": captured_at,
            "page_url": page_url, "screenshot": base64.b64encode(content).decode(),
        }  # fmt: skip
        self._api("POST", "sync/debug", json=body)

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        answer = self._api(method, path, **options)
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):  # a captive portal or a proxy's page
            raise TryAgain(f"what answers at {self._base} is not a cardsync server")
        return body

    def _api(
        self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        url = self._base.join(f"api/v1/{path}")
        answer = self._send(
            self._http.build_request(
                method, url, headers=self._auth | self._trace | (headers or {}), **options
            )
        )
        if answer.status_code >= 300 and answer.status_code != 304:
            raise _cooldown(answer, self._base) or _refusal(answer, about_the_key=True)
        return answer

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = self._http.send(request)
        except (httpx.TransportError, httpx.DecodingError) as trouble:
            reason = str(trouble) or type(trouble).__name__
            raise TryAgain(f"{_place(request.url)} cannot be reached ({reason})") from trouble
        if answer.status_code >= 500 or (
            answer.status_code == 429 and _body(answer).get("status") != "cooldown"
        ):
            raise _try_again(answer)
        return answer


def _receive(
    answer: httpx.Response, file: Path, have: int, most: int, go_on: Callable[[], bool]
) -> bool:
    if answer.status_code == 416:  # the file was already complete
        return True
    if answer.status_code >= 500 or answer.status_code == 429:
        raise TryAgain(f"the download answers {answer.status_code}", _retry_after(answer))
    if answer.status_code not in (200, 206):
        raise Refused(answer.status_code, f"http_{answer.status_code}", "the download is not there")
    goes_on = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(
        f"bytes {have}-"
    )
    size = have if goes_on else 0
    with file.open("ab" if goes_on else "wb") as out:
        for chunk in answer.iter_raw():
            size += len(chunk)
            if size > most:
                raise Refused(0, "too_large", f"the download is larger than {most:,} bytes")
            out.write(chunk)
            if not go_on():
                return False
    return True


def _turn_fields(turn: PersonsTurn | msgspec.UnsetType | None) -> dict[str, str | None]:
    if turn is msgspec.UNSET:
        return {}
    host = turn.page_host if turn else None
    # The server refuses a heartbeat with an invalid host, so such a host is omitted.
    shown = host if host and _HOST.fullmatch(host) else None
    return {"your_turn": turn.kind if turn else None, "your_turn_host": shown}


def _offer(body: dict[str, Any]) -> Offer | None:
    names = ("latest_version", "download_url", "signature", "sha256", "release_signature")
    version, url, signature, sha256, record_signature = (
        str(body.get(name) or "") for name in names
    )
    record = body.get("release")
    if body.get("update_available") is not True:
        return None
    return Offer(
        version,
        url,
        signature,
        sha256,
        record if isinstance(record, dict) else {},
        record_signature,
    )


def _try_again(answer: httpx.Response) -> TryAgain:
    rest = _retry_after(answer)
    what = (
        "the server is asked too often" if answer.status_code == 429 else "the server has trouble"
    )
    wish = f"; it wants {clock.span(rest)} of rest" if rest else ""
    return TryAgain(f"{what} ({answer.status_code}){wish}", rest)


def _refusal(answer: httpx.Response, *, about_the_key: bool) -> Refused:
    body = _body(answer)
    code = str(body.get("code") or body.get("status") or f"http_{answer.status_code}")
    message = str(body.get("error") or "")
    account = answer.status_code == 401 or (answer.status_code == 403 and code not in _CALL_CODES)
    return (KeyRefused if about_the_key and account else Refused)(answer.status_code, code, message)


def _cooldown(answer: httpx.Response, base: httpx.URL) -> Cooldown | None:
    body = _body(answer)
    if answer.status_code not in (402, 429) or body.get("status") != "cooldown":
        return None
    path = body.get("top_up_path")
    return Cooldown(
        answer.status_code,
        _whole(body.get("cooldown_remaining_seconds")) or 0,
        _whole(body.get("balance")),
        str(base.join(path)) if isinstance(path, str) and path.startswith("/") else None,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _place(url: httpx.URL) -> str:
    """Return host and port, the parts of an address that are usually wrong."""
    return url.netloc.decode("ascii", "replace")


def _body(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(answer.content)
    except ValueError:  # an object store answers in XML
        return {}
    return body if isinstance(body, dict) else {}


def _retry_after(answer: httpx.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    # The header may be a proxy's date or invalid; an agent waits an hour at most.
    return min(float(text), MOST_RETRY_AFTER) if text.isascii() and text.isdigit() else None


def _parts(content: bytes, between: Callable[[], None]) -> Iterator[bytes]:
    for start in range(0, len(content), PART_BYTES):
        if start:
            between()
        yield content[start : start + PART_BYTES]


def _upload_id(body: dict[str, Any]) -> int:
    if not isinstance(body.get("upload_id"), int):
        raise TryAgain("the server accepted the upload without naming it")
    return int(body["upload_id"])


def _count_rows(content: bytes) -> int | None:
    """Return the number of data rows of a price file, or None if the bytes are not a price file."""
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"), newline=""))
    header = next(reader, None)
    if not header or header[0].strip().casefold() != "tcgplayer id":
        return None
    return sum(1 for row in reader if row)


def _ids(header: str) -> tuple[int, ...]:
    """Parse IDs that are joined by commas; empty if a part is not an ID."""
    names = [name.strip() for name in header.split(",")]
    return tuple(map(int, names)) if all(n.isascii() and n.isdigit() for n in names) else ()

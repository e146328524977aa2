"""The commands that list and decide what waits, with a seller's key: `cardsync waiting`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tests.system.processes import until

from builders import a_csv, a_row
from cardsync.cli import program

if TYPE_CHECKING:
    from click.testing import Result
    from tests.system.processes import Server


def test_an_upload_is_listed_and_discarded_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seller = server.seller()
    seller.finished(seller.upload(a_csv(*(a_row(n) for n in range(1, 41)))))
    upload = seller.upload(a_csv(a_row(1, quantity=3)))
    until(lambda: seller.report(upload)["state"] == "awaiting_review", "the upload to wait")
    monkeypatch.setenv("CARDSYNC_API_KEY", seller.api_key)

    def waiting(*arguments: str) -> Result:
        return CliRunner().invoke(program, ["waiting", *arguments, "--server", server.url])

    listed = waiting("list", "--kind", "upload", "--json")
    [one] = json.loads(listed.stdout)["waiting"]
    assert one["id"] == upload
    named = ("upload", str(upload), "--revision")
    assert waiting("list").stdout.splitlines() == [
        f"upload {upload}, revision {one['revision']}: {one['summary']}",
        "1 wait",
    ]
    refused = waiting("approve", *named, "0")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "the server answered 409" in refused.stderr
    assert "approve or decline" in waiting("snooze", *named, one["revision"]).stderr
    declined = waiting("decline", *named, one["revision"])
    assert declined.stdout.splitlines() == [f"upload {upload}: decline"], declined.output
    assert "waits no more" in waiting("approve", *named, one["revision"]).stderr
    assert waiting("list", "--kind", "plan").stdout.splitlines() == ["0 wait"]
    assert seller.report(upload)["state"] == "discarded"

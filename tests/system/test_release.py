"""What `make release` signs can be checked, and what was changed afterwards is found."""

import base64
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cardsync.agents.releases.signing import canonical, load_key, make_key
from cardsync.platform.errors import CommandError

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy"))
import release


@pytest.fixture
def signed(tmp_path):
    """A folder with two files and their signed statement, and its public key."""
    key_file, public = make_key(tmp_path / "keys")
    folder = tmp_path / "dist"
    folder.mkdir()
    (folder / "a.whl").write_bytes(b"a")
    (folder / "b.tar.gz").write_bytes(b"b")
    sums = {path.name: release.sha256(path) for path in folder.iterdir()}
    release.write_statement(
        folder, sums, "0" * 40, datetime(2026, 11, 29, tzinfo=UTC), load_key(key_file)
    )
    return folder, public


def test_a_release_is_as_signed(signed, capsys):
    folder, public = signed
    release.main(["verify", str(folder), "--public-key", public])
    assert capsys.readouterr().out == f"2 files are as signed by {public}\n"
    statement = json.loads(
        base64.b64decode(json.loads((folder / release.PROVENANCE).read_text())["payload"])
    )
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert {one["name"] for one in statement["subject"]} == {"a.whl", "b.tar.gz"}


def test_another_byte_another_file_and_another_key_are_found(signed, tmp_path):
    folder, public = signed
    (folder / "c.whl").write_bytes(b"c")
    with pytest.raises(CommandError, match=r"not as signed: c\.whl"):
        release.verify(folder, public)
    (folder / "c.whl").unlink()
    (folder / "a.whl").write_bytes(b"A")
    with pytest.raises(CommandError, match=r"not as signed: a\.whl"):
        release.verify(folder, public)
    (folder / "a.whl").unlink()
    with pytest.raises(CommandError, match=r"missing: a\.whl"):
        release.verify(folder, public)
    _, other = make_key(tmp_path / "others")
    with pytest.raises(CommandError, match="another key"):
        release.verify(folder, other)


def test_a_statement_that_was_changed_is_found(signed):
    folder, _ = signed
    file = folder / release.PROVENANCE
    envelope = json.loads(file.read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["subject"][0]["digest"]["sha256"] = "0" * 64
    envelope["payload"] = base64.b64encode(canonical(statement)).decode()
    file.write_text(json.dumps(envelope))
    with pytest.raises(CommandError, match="signature does not fit"):
        release.verify(folder, None)


def test_the_signature_is_that_of_dsse(signed):
    """As any verifier of DSSE reads it: the type and the payload with their lengths."""
    folder, public = signed
    envelope = json.loads((folder / release.PROVENANCE).read_text())
    body = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    text = f"DSSEv1 {len(kind)} {kind} {len(body)} ".encode() + body
    assert release.encoded(body) == text
    assert envelope["signatures"][0]["keyid"] == public

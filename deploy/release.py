"""`make release`: builds what a release holds into `dist`, and signs how it was made.

    release.py build --key-file FILE     wheels, sdists, sync app, docs, SBOM, sums, provenance
    release.py wheels FOLDER             wheels and sdists alone
    release.py verify [--public-key KEY] [FOLDER]

The wheels are built from the unpacked sdists, so that what an sdist lacks ends the build.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cardsync import __version__
from cardsync.agents.releases.signing import canonical, load_key, public_key_of, sign
from cardsync.platform.errors import CommandError

TOP = Path(__file__).parents[1]
TOOLS = TOP / ".venv" / "release"
SUMS = "SHA256SUMS"
PROVENANCE = "provenance.intoto.json"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_BUILD_TYPE = "urn:cardsync:make-release"


def build(key_file: Path, folder: Path) -> None:
    key = load_key(key_file)
    commit = run("git", "rev-parse", "HEAD").strip()
    if run("git", "status", "--porcelain").strip():
        raise CommandError("the tree has changes: commit them, so that the release has a commit")
    began = datetime.now(UTC)
    shutil.rmtree(folder, ignore_errors=True)
    wheels(folder)
    say("the sync app in one file")
    sync_app(folder)
    say("documentation")
    run("make", "docs")
    with tarfile.open(folder / f"cardsync-docs-{__version__}.tar.gz", "w:gz") as archive:
        archive.add(TOP / "dist" / "site", f"cardsync-docs-{__version__}", filter=_plain)
    if folder != TOP / "dist":
        shutil.rmtree(TOP / "dist" / "site")
    say("packages and licenses")
    bill = str(TOP / "requirements" / "bill.py")
    for what, name in (("sbom", "sbom.cdx.json"), ("licences", "licenses.md")):
        (folder / name).write_text(run(sys.executable, bill, what))
    shutil.copyfile(TOP / "openapi.json", folder / "openapi.json")
    (folder / "notes.md").write_text(notes(__version__))
    image(folder)
    shutil.rmtree(folder / "site", ignore_errors=True)
    sums = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    write_statement(folder, sums, commit, began, key)
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")
    print(f"signed by {public_key_of(key)}")


def wheels(folder: Path) -> None:
    """Build the sdists and wheels. Files of one commit have one time: building it again gives the
    same bytes.
    """
    say("wheels and sdists")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    for project in (TOP, TOP / "agent"):
        wheel_of(project, folder)


def wheel_of(project: Path, folder: Path) -> None:
    """Build the sdist of a project, and its wheel from what the sdist holds."""
    hatch = (sys.executable, "-m", "hatchling", "build")
    run(*hatch, "-t", "sdist", "-d", str(folder), cwd=project)
    name = "cardsync" if project == TOP else "cardsync_agent"
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(folder / f"{name}-{__version__}.tar.gz") as archive:
            archive.extractall(place, filter="tar")
        unpacked = Path(place) / f"{name}-{__version__}"
        run(*hatch, "-t", "wheel", "-d", str(folder), cwd=unpacked)


def sync_app(folder: Path) -> None:
    """Build the sync app as one file for this system that needs Python and nothing else, and, where
    the places of its launcher and its Python are reached, as a program that brings Python along.
    """
    pins = re.findall(
        r"^[a-z0-9._-]+==[^ \\]+", (TOP / "requirements" / "run.txt").read_text(), re.M
    )
    with tempfile.TemporaryDirectory() as place:
        constraints = Path(place) / "constraints.txt"
        constraints.write_text("\n".join(pins))
        [wheel] = folder.glob("cardsync_agent-*.whl")
        pex = (sys.executable, "-m", "pex", "--constraints", str(constraints), "--no-strip-pex-env")
        pex = (*pex, str(wheel), "-c", "cardsync-agent", "-o")
        file = folder / f"cardsync-agent-{__version__}.pex"
        run(*pex, str(file), tools=True)
        system = f"{platform.system()}-{platform.machine()}".lower()
        program = folder / f"cardsync-agent-{__version__}-{system}"
        try:
            run(*pex, str(program), "--scie", "eager", "--scie-only", tools=True)
            run("env", "-i", str(program), "--version")
        except CommandError as e:
            program.unlink(missing_ok=True)
            say(f"no sync app that brings Python along: {str(e).splitlines()[-1]}")


def image(folder: Path) -> None:
    """Build the container's image where a builder is there."""
    builder = next((name for name in ("docker", "podman", "buildah") if _works(name)), None)
    if builder is None:
        say("no image: neither docker, podman nor buildah works here")
        return
    say("image")
    name = f"cardsync:{__version__}"
    run(builder, "build", "-f", "deploy/docker/Dockerfile", "-t", name, ".")
    run(builder, "save", "-o", str(folder / f"cardsync-{__version__}.oci.tar"), name)


def _works(builder: str) -> bool:
    """A client alone, without a service that builds, is no builder."""
    asked = [builder, "info"]
    return (
        shutil.which(builder) is not None
        and not subprocess.run(asked, capture_output=True, check=False).returncode
    )


def notes(version: str) -> str:
    """Return what CHANGELOG.md says of the version."""
    text = (TOP / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        raise CommandError(f"CHANGELOG.md has no section {version}: run `make changelog`")
    return found[1].strip() + "\n"


def provenance(sums: dict[str, str], commit: str, began: datetime) -> dict[str, Any]:
    """Return an in-toto statement with a SLSA v1 predicate."""
    source = f"git+cardsync@{commit}"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": it}} for name, it in sums.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"command": "make release", "version": __version__},
                "resolvedDependencies": [
                    {"uri": source, "digest": {"gitCommit": commit}},
                    *(
                        {"uri": f"requirements/{path.name}", "digest": {"sha256": sha256(path)}}
                        for path in sorted((TOP / "requirements").glob("*.txt"))
                    ),
                ],
            },
            "runDetails": {
                "builder": {"id": os.environ.get("RELEASE_BUILDER", "local")},
                "metadata": {
                    "startedOn": f"{began:%Y-%m-%dT%H:%M:%SZ}",
                    "finishedOn": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                },
            },
        },
    }


def write_statement(
    folder: Path, sums: dict[str, str], commit: str, began: datetime, key: Ed25519PrivateKey
) -> None:
    statement = canonical(provenance(sums, commit, began))
    envelope = {
        "payload": base64.b64encode(statement).decode(),
        "payloadType": _PAYLOAD_TYPE,
        "signatures": [{"keyid": public_key_of(key), "sig": sign(key, encoded(statement))}],
    }
    (folder / PROVENANCE).write_text(json.dumps(envelope, indent=2) + "\n")


def encoded(statement: bytes) -> bytes:
    """Return what is signed of a statement: the pre-authentication encoding of DSSE."""
    kind = _PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(statement), statement)


def verify(folder: Path, public_key: str | None) -> None:
    """Raise CommandError where a file differs from what was signed, or the key is another one."""
    if not (folder / PROVENANCE).exists():
        raise CommandError(f"{folder} has no {PROVENANCE}")
    envelope = json.loads((folder / PROVENANCE).read_text())
    statement = base64.b64decode(envelope["payload"])
    [signature] = envelope["signatures"]
    if public_key is not None and signature["keyid"] != public_key:
        raise CommandError(f"it was signed by another key: {signature['keyid']}")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature["keyid"]))
    try:
        key.verify(base64.b64decode(signature["sig"]), encoded(statement))
    except InvalidSignature:
        raise CommandError("the signature does not fit the statement") from None
    told = {one["name"]: one["digest"]["sha256"] for one in json.loads(statement)["subject"]}
    there = {path.name for path in folder.iterdir()} - {SUMS, PROVENANCE}
    if wrong := sorted(name for name in there if told.get(name) != sha256(folder / name)):
        raise CommandError(f"not as signed: {', '.join(wrong)}")
    if missing := sorted(set(told) - there):
        raise CommandError(f"missing: {', '.join(missing)}")
    print(f"{len(there)} files are as signed by {signature['keyid']}")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str, cwd: Path = TOP, tools: bool = False) -> str:
    """Return what a command prints; raise CommandError with its last lines where it fails."""
    environment = os.environ | ({"PYTHONPATH": str(TOOLS)} if tools else {})
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise CommandError(f"{' '.join(command[:4])} failed:\n{last}")
    return done.stdout


def say(what: str) -> None:
    print(f"=== {what}", flush=True)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Forget who built it and when."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    return member


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("--key-file", type=Path, required=True)
    building.add_argument("--folder", type=Path, default=TOP / "dist")
    alone = commands.add_parser("wheels")
    alone.add_argument("folder", type=Path)
    verifying = commands.add_parser("verify")
    verifying.add_argument("folder", type=Path, nargs="?", default=TOP / "dist")
    verifying.add_argument("--public-key")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "wheels":
            wheels(chosen.folder)
        elif chosen.command == "build":
            build(chosen.key_file, chosen.folder)
        else:
            verify(chosen.folder, chosen.public_key)
    except CommandError as e:
        sys.exit(f"release: {e}")


if __name__ == "__main__":
    main(sys.argv[1:])

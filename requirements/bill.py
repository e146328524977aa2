"""Says what is installed for running cardsync: `sbom` prints it as CycloneDX JSON, `licences` as a table
that ends with 1 where a licence is not allowed, and `audit FOLDER` compares every lock file with a
folder of advisories in OSV's form.

All of it comes from the lock files and from what is installed; nothing is asked of the internet.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
FRONT = ROOT / "frontend" / "package-lock.json"
LOCKS = ("run.txt", "dev.txt", "mutants.txt", "node.txt")
# Each may be passed on with cardsync (Apache-2.0): of a choice (OR) one, of a sum (AND) every one.
ALLOWED = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "LGPL-3.0-only",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    ]
)
# SPDX names these licences so; some packages write them in another way.
SAID = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-0-Clause": "0BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)")


@dataclass(frozen=True, order=True)
class Package:
    """`kind` is pypi or npm."""

    kind: str
    name: str
    version: str
    licence: str = ""

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def pinned(lock: str) -> Iterator[tuple[str, str]]:
    for line in (ROOT / "requirements" / lock).read_text().splitlines():
        if found := _PINNED.match(line):
            yield found[1], found[2]


def front(*, dev: bool) -> Iterator[Package]:
    for place, one in json.loads(FRONT.read_text())["packages"].items():
        if place and (dev or not one.get("dev")):
            said = one.get("license", "")
            name = place.rpartition("node_modules/")[2]
            yield Package("npm", name, one["version"], SAID.get(said, said))


def licence_of(name: str) -> str:
    """Return SPDX's expression of an installed package's licence, as far as it says one."""
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if expression := told.get("License-Expression"):
        return str(expression)
    text = (told.get("License") or "").strip().partition("\n")[0].strip()
    if text in SAID or is_allowed(text):
        return SAID.get(text, text)
    classified = [
        entry.rpartition(":: ")[2]
        for entry in told.get_all("Classifier") or []
        if entry.startswith("License :: ")
    ]
    return " OR ".join(SAID.get(one, one) for one in classified)


def is_allowed(expression: str) -> bool:
    """Read an expression without nested choices, as packages have it."""
    bare = re.sub(r"[()]", "", expression)
    return bool(bare) and all(
        any(one.strip() in ALLOWED for one in part.split(" OR ")) for part in bare.split(" AND ")
    )


def running() -> list[Package]:
    """Return the packages that run, with their licences."""
    python = [
        Package("pypi", name, version, licence_of(name)) for name, version in pinned("run.txt")
    ]
    return sorted([*python, *front(dev=False)])


def sbom(packages: list[Package], version: str) -> dict[str, Any]:
    components = [
        {
            "type": "library",
            "bom-ref": one.purl,
            "name": one.name,
            "version": one.version,
            "purl": one.purl,
            **({"licenses": [{"expression": one.licence}]} if one.licence else {}),
        }
        for one in packages
    ]
    itself = {
        "type": "application",
        "bom-ref": "cardsync",
        "name": "cardsync",
        "version": version,
        "licenses": [{"expression": "Apache-2.0"}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same for the same packages, so that two builds can be compared.
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components)).urn,
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": [
            {"ref": "cardsync", "dependsOn": [one["bom-ref"] for one in components]},
        ],
    }


def table(packages: list[Package]) -> str:
    rows = [f"| {one.name} | {one.version} | {one.licence or 'not known'} |" for one in packages]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows])


def refused(packages: list[Package]) -> list[Package]:
    return [one for one in packages if not is_allowed(one.licence)]


def advisories(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.json")):
        told = json.loads(path.read_text())
        if "affected" in told and "withdrawn" not in told:
            yield told


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def affects(affected: dict[str, Any], one: Package) -> bool:
    of = affected.get("package", {})
    if of.get("ecosystem", "").lower() != one.kind or _plain(of.get("name", "")) != _plain(
        one.name
    ):
        return False
    if one.version in affected.get("versions", ()):
        return True
    ranges = [each for each in affected.get("ranges", ()) if each.get("type") != "GIT"]
    return any(_in_range(each.get("events", ()), Version(one.version)) for each in ranges)


def _in_range(events: list[dict[str, str]], version: Version) -> bool:
    inside = False
    for event in events:
        [(kind, at)] = event.items()
        try:
            moment = Version(at) if at != "0" else Version("0.dev0")
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= moment:
            inside = True
        elif (kind == "fixed" and version >= moment) or (
            kind == "last_affected" and version > moment
        ):
            inside = False
    return inside


def audit(folder: Path) -> list[str]:
    """Return a line for each pinned package that an advisory names."""
    python = {Package("pypi", *one) for lock in LOCKS for one in pinned(lock)}
    packages = sorted(python | set(front(dev=True)))
    return [
        f"{one.name} {one.version}: {told.get('id')}: {told.get('summary', '')}"
        for told in advisories(folder)
        for one in packages
        if any(affects(affected, one) for affected in told["affected"])
    ]


def main(arguments: list[str]) -> int:
    match arguments:
        case ["sbom"]:
            print(json.dumps(sbom(running(), metadata.version("cardsync")), indent=2))
        case ["licences"]:
            packages = running()
            print(table(packages))
            for one in refused(packages):
                print(f"{one.name}: {one.licence or 'no licence'} is not allowed", file=sys.stderr)
            return 1 if refused(packages) else 0
        case ["audit", folder] if (
            folder and Path(folder).is_dir() and any(advisories(Path(folder)))
        ):
            found = audit(Path(folder))
            print("\n".join(found) or "no advisory names a pinned package")
            return 1 if found else 0
        case ["audit", *_]:
            print(
                "there are no advisories: give ADVISORIES=FOLDER, a folder of JSON files in OSV's"
                " form; nothing was compared",
                file=sys.stderr,
            )
            return 2
        case _:
            print("usage: bill.py sbom | licences | audit FOLDER", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

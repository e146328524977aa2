"""Do the tests bite? `make mutants`: mutmut changes the modules on which money, access and locks
rest, one place at a time, and lists the changes that no test has noticed.

A sample is drawn, by the day unless SOAK_SEED names another seed. A survivor that docs/testing.md
does not excuse is red, and so is a share of killed ones below LEAST.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "testing.md"
EXCUSES: Final = re.compile(r"<!-- survivors -->\n(.*?)<!-- end of survivors -->", re.DOTALL)
EXCUSE: Final = re.compile(r"^\| `([^`]+)` \| `(.+)` \| .+ \|$", re.MULTILINE)
LEAST: Final = 0.85
SURVIVED, NO_TESTS = 0, 33
AGAIN: Final = (
    "PYTHONPATH=.venv/mutmut CARDSYNC_TEST_TURN=all .venv/bin/python .venv/mutmut/bin/mutmut run"
)
# Where mutmut makes all mutants and asks which test calls which function, before a sample of them.
FIRST: Final = "cardsync.platform.money.x_to_units__mutmut_1"


def mutmut(*arguments: str, seconds: float | None = None) -> str:
    """Run mutmut from its own folder, which the other tests never see."""
    tools = str(ROOT / ".venv" / "mutmut")
    # The same tests run each day, so that a change lives or dies the same.
    environment = os.environ | {"PYTHONPATH": tools, "CARDSYNC_TEST_TURN": "all"}
    command = [sys.executable, str(ROOT / ".venv" / "mutmut" / "bin" / "mutmut"), *arguments]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(
            f"mutmut {arguments[0]} ended with {ran.returncode}:\n{ran.stdout[-3000:]}"
        )
    return ran.stdout


def outcomes() -> dict[str, int | None]:
    """The exit code of the tests for each mutant, None for one that was not tried."""
    found: dict[str, int | None] = {}
    for path in (ROOT / "mutants" / "src").rglob("*.meta"):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def change(mutant: str) -> tuple[str, str]:
    """The function that a mutant changes, and its new line."""
    added = [line for line in mutmut("show", mutant).splitlines() if re.match(r"\+(?!\+\+)", line)]
    function = re.sub(r"__mutmut_\d+$", "", mutant)
    return function, added[0].lstrip("+").strip() if added else ""


def excused() -> set[tuple[str, str]]:
    [told] = EXCUSES.findall(PAGE.read_text())
    return set(EXCUSE.findall(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=7200)
    asked = parser.parse_args()
    seed = os.environ.get("SOAK_SEED") or datetime.now(UTC).strftime("%Y%m%d")
    print(f"mutants: a sample of {asked.count}, to be repeated with SOAK_SEED={seed}", flush=True)
    mutmut("run", FIRST)
    everything = sorted(outcomes())
    drawn = random.Random(seed).sample(everything, min(asked.count, len(everything)))
    try:
        mutmut("run", *drawn, seconds=asked.seconds)
    except subprocess.TimeoutExpired:
        print("the time of this part is over")
    known = outcomes()
    tried = [mutant for mutant in drawn if known[mutant] is not None]
    lived = [mutant for mutant in tried if known[mutant] in (SURVIVED, NO_TESTS)]
    excuses = excused()
    red = [mutant for mutant in lived if change(mutant) not in excuses]
    rooms = Counter(mutant.rpartition(".")[0] for mutant in tried)
    alive = Counter(mutant.rpartition(".")[0] for mutant in lived)
    for room, count in sorted(rooms.items()):
        print(f"{room:<44} {count - alive[room]:>4} of {count:>4} killed")
    share = 1 - len(lived) / max(1, len(tried))
    print(
        f"{len(tried)} of {len(everything)} tried, {share:.1%} killed, {len(red)} to be looked at"
    )
    for mutant in red:
        function, line = change(mutant)
        print(f"survived: | `{function}` | `{line}` | …, again: {AGAIN} {mutant!r}")
    sys.exit(bool(red) or share < LEAST)


if __name__ == "__main__":
    main()

"""A file name says which module it is: only a package's conventions occur more than once."""

from collections import Counter
from pathlib import Path

import cardsync

# docs/flow.md says what each of these holds.
RECUR = {
    "__init__",
    "as_csv",
    "commands",
    "errors",
    "limits",
    "models",
    "queries",
    "routes",
    "schemas",
}


def test_every_other_file_name_occurs_once():
    names = Counter(path.stem for path in Path(cardsync.__file__).parent.rglob("*.py"))
    assert {name for name, count in names.items() if count > 1} <= RECUR

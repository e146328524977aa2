"""The project's own demo: a small catalog and one seller's pricing export.

Names, sets and collector numbers are real; ids, prices and quantities are invented.
A few rows of the export are broken on purpose, so that the demo shows rejected rows too.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent

CATALOG: Path = _HERE / "catalog.csv"
INVENTORY: Path = _HERE / "inventory.csv"

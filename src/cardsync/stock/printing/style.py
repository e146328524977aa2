"""Writes the CSS that prints a label sheet with exact positions in millimeters. Pure."""

from __future__ import annotations

from decimal import Decimal

from cardsync.stock.printing.sheets import Sheet, position

_INSIDE = Decimal("1.2")
_COMMON = """\
* { box-sizing: border-box }
html { color-scheme: light }
body { margin: 0; background: #fff; color: #000; font: 7pt/1.2 system-ui, "DejaVu Sans", sans-serif }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center;
  padding: .75rem 1.25rem; border-bottom: 1px solid #d5d8e0; background: #fff; font-size: .875rem }
header h1 { margin: 0; font-size: 1.25rem }
header p { flex: 1 1 16rem; margin: 0; color: #4b5162 }
header a { color: #2444ac }
header button { min-height: 36px; padding: 0 1rem; border: 0; border-radius: 6px;
  background: #2f55d4; color: #fff; font: 600 .875rem system-ui, sans-serif; cursor: pointer }
.label { position: absolute; display: flex; gap: 1mm; overflow: hidden; overflow-wrap: anywhere }
.label p { margin: 0; min-width: 0 }
.label strong { font-size: 1.15em }
.outlined .label { border: .2mm solid #000 }
@media screen {
  body { background: #eceef3 }
  main { display: grid; justify-content: safe center; gap: 1rem; padding: 1rem; overflow-x: auto }
  .page { background: #fff; box-shadow: 0 1px 3px #0003 }
}
@media print { header { display: none } }
"""


def style_of(sheet: Sheet) -> str:
    """Return the CSS of a sheet. The class p<n> is the position of the n-th label on a page."""
    page, label = sheet.page, sheet.label
    code = min(label.height, label.width / 2) - 2 * _INSIDE
    return "\n".join(
        (
            f"@page {{ size: {page.width}mm {page.height}mm; margin: 0 }}",
            f"{_COMMON}.page {{ position: relative; overflow: hidden; break-after: page }}",
            f".page {{ width: {page.width}mm; height: {page.height}mm }}",
            ".page:last-child { break-after: auto }",
            f".label {{ width: {label.width}mm; height: {label.height}mm; padding: {_INSIDE}mm }}",
            f".label img {{ flex: none; width: {code}mm; height: {code}mm }}",
            f".label .card {{ width: {code * 63 / 88:.2f}mm; object-fit: contain }}",
            *(_place(sheet, number) for number in range(1, sheet.labels + 1)),
            "",
        )
    )


def _place(sheet: Sheet, number: int) -> str:
    at = position(sheet, number)
    return f".p{number} {{ left: {at.left}mm; top: {at.top}mm }}"

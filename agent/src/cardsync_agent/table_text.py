"""Reads the bytes of a table that a person supplies: its encoding, the lines before its header, its
delimiter, broken quotes, and its number format. Pure.

The server uses this module by a symbolic link, so that it reads a file as the sync app does and
gives the same messages.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import chain, takewhile
from typing import Final, NamedTuple

from .plurals import counted

MOST_LINES: Final = 100  # the most lines of one record: comments may contain line breaks
MOST_CELL: Final = 4_000
HEAD_BYTES: Final = 64 * 1024
# Lines before the header: a title, a date, filters.
MOST_BEFORE: Final = 20
_DELIMITERS: Final = ",;\t|"
_CALLED: Final = {";": ";", "\t": "tabs", "|": "|"}
SEP: Final = re.compile(r'\s*"?sep=(.)"?[,;|\s]*', re.IGNORECASE)
_QUOTED: Final = re.compile(r'"[^"]*"')
_SAVE: Final = "open it and save it as CSV"
_ZIPPED: Final = (
    (b"xl/", "an Excel workbook (xlsx)"),
    (b"opendocument.spreadsheet", "an OpenDocument spreadsheet (ods)"),
    (b"Index/", "a Numbers spreadsheet"),
    (b"preview", "a Numbers spreadsheet"),
    (b"word/", "a Word document"),
)
_OTHERS: Final = (
    (b"\xd0\xcf\x11\xe0", f"an Excel workbook (xls): {_SAVE}"),
    (b"%PDF-", "a PDF: save the table that it was made from as CSV"),
    (b"PAR1", f"a Parquet file: {_SAVE}"),
    (b"SQLite format 3", f"a database: {_SAVE}"),
    (b"{\\rtf", f"a text with a layout (RTF): {_SAVE}"),
    (b"\x89PNG", "a picture: save the table as CSV"),
    (b"\xff\xd8\xff", "a picture: save the table as CSV"),
    (b"Rar!", "an archive: unpack it and take the CSV in it"),
    (b"7z\xbc\xaf", "an archive: unpack it and take the CSV in it"),
)
# If a bare CR ends the first line, bare CRs also end other lines.
_FIRST_ENDS_IN_CR: Final = re.compile(rb"[^\r\n]*\r+[^\r\n]")
_MARKUP: Final = re.compile(rb"<(?:!doctype html|html|head|body|table|meta|div)\b", re.IGNORECASE)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotATable(Exception):
    """The bytes are not text; the message names what they are, and the remedy."""


class Form(NamedTuple):
    """The format of a table. `before` is the number of lines before the table's header. `decimal`
    is the decimal sign, for numbers that do not show it themselves.
    """

    encoding: str = "utf-8"
    delimiter: str = ","
    before: int = 0
    decimal: str = "."

    def said(self) -> str:
        """Return the differences from the marketplace's own format; empty if there are none."""
        parts = []
        if self.encoding != "utf-8":
            named = {"cp1252": "Windows-1252"}
            parts.append(named.get(self.encoding, self.encoding[:6].upper()))
        if self.delimiter != ",":
            parts.append(f"separated by {_CALLED.get(self.delimiter, self.delimiter)}")
        if self.decimal != ".":
            parts.append("with decimal commas")
        if self.before:
            parts.append(f"with its header in line {self.before + 1}")
        return ", ".join(parts)


AS_EXPORTED: Final = Form()


class Row(NamedTuple):
    """One record: the line at which it begins, and its cells or its fault. The fault never quotes
    the record, because any column of a damaged line may contain a name or a street.
    """

    line: int
    cells: list[str]
    fault: str = ""


class Table(NamedTuple):
    form: Form
    header: list[str]
    rows: Iterator[Row]


IsHeader = Callable[[Sequence[str]], bool]


def refuse_other_kinds(head: bytes) -> None:
    """Raise NotATable for the beginning of a file of another recognized type."""
    if head.startswith(b"PK\x03\x04"):
        for sign, what in _ZIPPED:
            if sign in head:
                raise NotATable(f"this is {what}, not a CSV: {_SAVE}")
        raise NotATable("this is a ZIP archive: unpack it and take the CSV in it")
    for sign, what in _OTHERS:
        if head.startswith(sign):
            raise NotATable(f"this is {what}")
    begins = head[:2_000].removeprefix(codecs.BOM_UTF8).lstrip()
    if begins.startswith(b"<?xml") or _MARKUP.match(begins):
        raise NotATable(f"this is a web page or XML, whatever its name says: {_SAVE}")


def encoding_of(head: bytes) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    # Without a byte-order mark, every second byte of Western UTF-16 is zero.
    for encoding, zeros, letters in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        if all(
            head[zeros:end:2].count(0) * 20 > end * 7 and head[letters:end:2].count(0) * 20 < end
            for end in (16, 4_096 if len(head) > 4_096 else len(head))
        ):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head[:HEAD_BYTES])
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def text_of_line(line: bytes) -> str:
    """Decode UTF-8, or a line that is not UTF-8 in the encoding of Western Windows programs."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")


def as_utf8(pieces: Iterable[bytes]) -> tuple[str, Iterator[bytes], bytes]:
    """Return the encoding of a file that is read in chunks, its chunks without a byte-order mark
    and with lines that end in LF or CRLF, and its beginning. Chunks in UTF-8 and Windows-1252 keep
    their encoding. Raises NotATable.
    """
    pieces = iter(pieces)
    head = b""
    while len(head) <= HEAD_BYTES and (piece := next(pieces, None)) is not None:
        head += piece
    refuse_other_kinds(head)
    encoding = encoding_of(head)
    for mark, marked in _MARKS:
        if marked == encoding:
            head = head.removeprefix(mark)
    if encoding.startswith(("utf-16", "utf-32")):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        pieces = _recoded(decoder, pieces)
        head = decoder.decode(head).encode("utf-8", "replace")
    if _FIRST_ENDS_IN_CR.match(head):
        head = _with_lf(head)
        pieces = map(_with_lf, pieces)
    return encoding, pieces, head


def _with_lf(piece: bytes) -> bytes:
    return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _recoded(decoder: codecs.IncrementalDecoder, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def form_of(lines: Sequence[str], is_header: IsHeader, encoding: str = "utf-8") -> Form | None:
    """Return the format of the table with these first lines. Return None if none of the lines is a
    header. The delimiter of a `sep=` line is tried first.
    """
    said = ""
    for at, line in enumerate(lines[: MOST_BEFORE + 1]):
        if at == 0 and (sep := SEP.fullmatch(line)):
            said = sep[1]
            continue
        for delimiter in delimiters_of(line, said):
            if is_header(cells_of(line, delimiter)):
                form = Form(encoding, delimiter, at)
                return form._replace(decimal=_decimal_of(form, lines[at + 1 :]))
    return None


def delimiters_of(line: str, said: str = "") -> list[str]:
    """Return the possible delimiters of a line, the likeliest first."""
    bare = _QUOTED.sub("", line)
    found = sorted((one for one in _DELIMITERS if one in bare), key=bare.count, reverse=True)
    return [said, *found] if said else found or [","]


def cells_of(line: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
    return [plain_cell(cell) for cell in unwrapped(cells, delimiter)]


def column_name(name: str) -> str:
    """Return a column's name in the form in which names are compared."""
    return " ".join(name.replace("_", " ").split()).casefold()


# Spreadsheets mark a number as text like this: ="00123".
_AS_TEXT: Final = re.compile(r'="([^"]*)"')
# Invisible characters: byte-order marks between joined files, and characters at the end of old or
# padded files.
_UNSEEN: Final = "\ufeff\u200b\0\x1a"


def plain_cell(cell: str) -> str:
    """Return a cell as a person sees it."""
    bare = cell.strip().strip("\ufeff\u200b").strip()
    found = _AS_TEXT.fullmatch(bare)
    return found[1].strip() if found else bare


def is_blank(cells: Iterable[str]) -> bool:
    return not any(cell.strip().strip(_UNSEEN) for cell in cells)


def unwrapped(cells: list[str], delimiter: str) -> list[str]:
    """Return the cells of a record that a spreadsheet wrote as one quoted cell."""
    if len(cells) != 1 or delimiter not in cells[0]:
        return cells
    try:
        return next(csv.reader([cells[0]], delimiter=delimiter, strict=True), cells)
    except csv.Error:
        return cells


def _number(part: str, delimiter: str) -> re.Pattern[str]:
    """Return the pattern of this number as a whole cell, with or without quotes and a currency
    sign.
    """
    ends = re.escape(f'{delimiter}"$€£')
    begins = rf"(?:^|(?<=[{ends}])|(?<=[$€£] ))"
    return re.compile(rf"{begins}-?{part}(?=[{ends}]| [$€£]|$)")


_POINT: Final = r"(?:[0-9]*\.(?:[0-9]{1,2}|[0-9]{4,}))"
_COMMA: Final = r"[0-9.]*,[0-9]+"
# With three digits after it, a comma may separate thousands, so such cells do not count.
_SURE_COMMA: Final = r"(?:[0-9.]*,(?:[0-9]{1,2}|[0-9]{4,}))"


def _decimal_of(form: Form, lines: Sequence[str]) -> str:
    """Return the decimal sign by the delimiter and the first rows. If the delimiter is a comma, the
    decimal sign is a point. If the delimiter is a semicolon, the sign is a comma, unless the rows
    have decimals only after points. If the delimiter is a tab or a bar, the sign is a comma if the
    rows have decimals only after commas, else a point.
    """
    between = form.delimiter
    if between == ",":
        return "."
    text = "\n".join(lines).replace("\r", "").replace("\n", between)
    pointed = _number(_POINT, between).search(text)
    if between == ";":
        return "." if pointed and not _number(_COMMA, between).search(text) else ","
    return "," if not pointed and _number(_SURE_COMMA, between).search(text) else "."


def read_table(data: bytes, is_header: IsHeader, fewest: int | None = 1) -> Table:
    """Read a whole file. If no line is a header by `is_header`, the first non-blank line is the
    header. A row must have at least `fewest` cells, or all if that is None; missing cells are added
    as blank ones. Raises NotATable.
    """
    lines, encoding = lines_of(data)
    form = form_of(lines, is_header, encoding) or first_line(lines, encoding)
    header = cells_of(lines[form.before], form.delimiter) if form.before < len(lines) else []
    rows = read_rows(lines, form, len(header), fewest)
    return Table(form, header, without_headers(rows, header))


def without_headers(rows: Iterable[Row], header: list[str]) -> Iterator[Row]:
    """Remove repeated headers: a person may have joined several files."""
    for row in rows:
        begins = bool(row.cells) and plain_cell(row.cells[0]) == header[0]
        if not (begins and list(map(plain_cell, row.cells)) == header):
            yield row


def first_line(lines: Sequence[str], encoding: str = "utf-8") -> Form:
    """Return the format by the first non-blank line."""
    sep = SEP.fullmatch(lines[0]) if lines else None
    at = next((at for at, line in enumerate(lines) if line.strip() and not (sep and at == 0)), 0)
    line = lines[at] if at < len(lines) else ""
    form = Form(encoding, delimiters_of(line, sep[1] if sep else "")[0], at)
    return form._replace(decimal=_decimal_of(form, lines[at + 1 : at + 200]))


def lines_of(data: bytes) -> tuple[list[str], str]:
    """Return the lines of a file and its encoding. Raises NotATable."""
    encoding, pieces, head = as_utf8([data])
    plain = b"".join(chain([head], pieces))
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        text = "\n".join(text_of_line(line) for line in plain.split(b"\n"))
        encoding = "cp1252"
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line.lstrip("\ufeff") for line in lines], encoding


def read_rows(
    lines: Sequence[str], form: Form, width: int, fewest: int | None = None, *, strict: bool = False
) -> Iterator[Row]:
    """Yield each record after the header that is not blank, or its fault. A quote that is never
    closed damages only its own line; if `strict`, a misplaced quote damages its line, too. If one
    cell is enough, blank cells beyond the header are ignored.
    """
    fewest = width if fewest is None else fewest
    at = form.before + 1
    while at < len(lines):
        for cells in _plain_records(lines, at, form.delimiter, width):
            at += 1
            if not is_blank(cells):
                yield Row(at, _seen(cells, lines[at - 1]))
        line = lines[at] if at < len(lines) else ""
        if is_blank(line.split(form.delimiter)):
            at += 1
            continue
        cells, used, fault = _record(lines, at, form.delimiter, width, fewest, strict=strict)
        if fault or not is_blank(cells):
            filled = [*_seen(cells, line), *[""] * (width - len(cells))]
            yield Row(at + 1, [] if fault else filled, fault)
        at += used


def _seen(cells: list[str], line: str) -> list[str]:
    """Return the cells as a person sees them: without the marks ="…" of spreadsheets."""
    return list(map(plain_cell, cells)) if '="' in line else cells


def _plain_records(
    lines: Sequence[str], at: int, delimiter: str, width: int
) -> Iterator[list[str]]:
    """Yield the records from line `at` on, up to the first record that is not exactly one line."""
    ahead = takewhile(_may_be_plain, map(lines.__getitem__, range(at, len(lines))))
    reader = csv.reader(ahead, delimiter=delimiter, strict=True)
    try:
        for count, cells in enumerate(reader, 1):
            if reader.line_num != count or len(cells) != width:
                return
            yield cells
    except csv.Error:
        return


def _may_be_plain(line: str) -> bool:
    return len(line) <= MOST_CELL and line.count('"') % 2 == 0 and "\0" not in line


def _record(
    lines: Sequence[str], at: int, delimiter: str, width: int, fewest: int, *, strict: bool
) -> tuple[list[str], int, str]:
    """Return the cells of the record that begins here, its number of lines, and its fault."""
    line = lines[at]
    if '"' not in line:
        cells, used = line.split(delimiter), 1
    else:
        reader = csv.reader(
            (f"{one}\n" for one in _open_lines(lines, at, delimiter, width)),
            delimiter=delimiter,
            strict=True,
        )
        try:
            cells = unwrapped(next(reader, []), delimiter)
            used = reader.line_num
        except csv.Error:
            # A stray quote in the middle of a cell does no harm.
            cells = [] if strict else _loosely(line, delimiter, width)
            used = 1
            cells = cells if len(cells) >= (width if fewest == 1 else fewest) else []
    while fewest == 1 and len(cells) > width and not cells[-1].strip():
        cells.pop()
    fault = _fault(cells, width, fewest)
    return cells, 1 if fault else used, fault


def _open_lines(lines: Sequence[str], at: int, delimiter: str, width: int) -> Iterator[str]:
    """Yield the lines that a record may span: its first line and the lines after it, up to a line
    that is a record by itself.
    """
    yield lines[at]
    for line in lines[at + 1 : at + MOST_LINES]:
        if len(cells_of(line, delimiter)) == width:
            return
        yield line


def with_stray_quotes(line: str, delimiter: str, width: int) -> list[str]:
    """Return the cells of a line in which quotes inside a quoted cell are not doubled: 1,"Kongming,
    "Sleeping Dragon"",3. Return no cells if their number is not `width`. A quoted cell ends with
    the first quote before a delimiter that closes all its inner quotes.
    """
    cells: list[str] = []
    rest = line.rstrip("\r\n") + delimiter if '"' in line else ""
    while rest and len(cells) <= width:
        if not rest.lstrip(" ").startswith('"'):
            cell, _, rest = rest.partition(delimiter)
            if '"' in cell:
                return []
            cells.append(cell)
            continue
        rest = rest.lstrip(" ")
        end = rest.find(f'"{delimiter}', 1)
        while end > 0 and rest.count('"', 1, end) % 2:
            end = rest.find(f'"{delimiter}', end + 1)
        if end < 0:
            return []
        cells.append(rest[1:end].replace('""', '"'))
        rest = rest[end + 1 + len(delimiter) :]
    return cells if len(cells) == width else []


def _loosely(line: str, delimiter: str, width: int) -> list[str]:
    if cells := with_stray_quotes(line, delimiter, width):
        return cells
    try:
        cells = next(csv.reader([f"{line}\n"], delimiter=delimiter), [])
    except csv.Error:
        return []
    is_open = bool(cells) and cells[-1].endswith("\n")
    return [] if is_open else cells


def _fault(cells: list[str], width: int, fewest: int) -> str:
    if not cells:
        return "a quote is misplaced or never closed"
    if is_blank(cells):
        return ""
    if not fewest <= len(cells) <= width:
        return miscounted(len(cells), width)
    if any("\0" in cell for cell in cells):
        return "a NUL byte in it"
    if max(map(len, cells)) > MOST_CELL:
        return f"a cell of more than {MOST_CELL:,} characters"
    return ""


def miscounted(cells: int, width: int) -> str:
    return f"this row has {counted(cells, 'column', 'columns')}; {width:,} expected"


_SIGNS: Final = re.compile(
    r"(?:US|CA|AU?|C|NZ)?\$|[€£¥₩]|\b(?:USD|EUR|GBP|CAD|AUD|CHF|JPY)\b", re.I
)
_SPACES: Final = re.compile("(?<=[0-9])[ '\u2019\u00a0\u2009\u202f](?=[0-9]{3})")
_GROUPED: Final = {
    one: re.compile(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(one)}[0-9]{{3}})+") for one in ",."
}
_MOST_NUMBER: Final = 60


def typed_number(text: str, decimal: str = ".") -> str:
    """Convert a number as people and spreadsheets write it to a plain decimal, if it is one:
    $1,234.50, 1.234,50 €, (2,5), −3.

    A comma before exactly three digits groups thousands, and any other comma precedes decimals. If
    `decimal` is the comma, every comma precedes decimals, and points group thousands.
    """
    plain = plain_cell(text)
    if len(plain) > _MOST_NUMBER:
        return plain
    plain = _SIGNS.sub("", plain.replace("\u2212", "-"), count=1).strip()
    if plain.startswith("(") and plain.endswith(")"):
        plain = f"-{plain[1:-1].strip()}"
    if plain[:1] in "+-":
        plain = plain[:1] + _SIGNS.sub("", plain[1:], count=1).strip()
    plain = _SPACES.sub("", plain)
    comma, point = plain.rfind(","), plain.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = "," if comma > point else "."
    elif (one := "," if comma >= 0 else ".") in plain:
        decimal = _decimal_sign(plain, one, decimal)
    group = "." if decimal == "," else ","
    whole, sign, part = plain.partition(decimal)
    if group in whole:
        if not _GROUPED[group].fullmatch(whole):
            return text.strip()
        whole = whole.replace(group, "")
    return f"{whole}.{part}" if sign else whole


def _decimal_sign(plain: str, one: str, decimal: str) -> str:
    """Return the decimal sign of a number that has only points or only commas."""
    other = "." if one == "," else ","
    if not _GROUPED[one].fullmatch(plain):
        return one
    if plain.count(one) > 1:
        return other
    is_grouped = decimal != one and not plain.lstrip("+-").startswith("0")
    return other if is_grouped else one


_WHOLE: Final = re.compile("[0-9][0-9.,' \u2019\u00a0\u2009\u202f]*")


def typed_whole(text: str, decimal: str = ".") -> int:
    """Parse a whole number, as spreadsheets write it: 1,003 or 3.0. If a number is not whole by the
    file's decimal sign, that sign groups thousands. Raises ValueError.
    """
    plain = plain_cell(text)
    if not _WHOLE.fullmatch(plain):
        raise ValueError(text)
    if decimal == "," and _GROUPED[","].fullmatch(plain):
        plain = plain.replace(",", "")
    whole, _, part = typed_number(plain, decimal).partition(".")
    if not (whole.isascii() and whole.isdigit()) or part.strip("0") or len(whole) > 30:
        raise ValueError(text)
    return int(whole)


_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAY: Final = re.compile(
    r"(?:(?P<year>\d{4})(?P<between>[-/])(?P<month>\d{1,2})(?P=between)(?P<day>\d{1,2})"
    r"|(?P<american>\d{1,2})/(?P<of_month>\d{1,2})/(?P<american_year>\d{4}|\d{2})"
    r"|(?P<european_day>\d{1,2})\.(?P<european>\d{1,2})\.(?P<european_year>\d{4})"
    r"|(?:[a-z]+,\s*)?(?P<spelled_day>\d{1,2})[ -](?P<spelled>[a-z]{3,9})\.?,?[ -]"
    r"(?P<spelled_year>\d{4}|\d{2})"
    r"|(?:[a-z]+,\s*)?(?P<named>[a-z]{3,9})\.? (?P<named_day>\d{1,2}),? (?P<named_year>\d{4}))"
    r"(?:[T ,].*)?",
    re.ASCII | re.IGNORECASE,
)


def typed_day(text: str) -> date | None:
    """Parse 2026-07-03, 7/3/2026, 7/3/26, 03.07.2026, Friday, 03 July 2026, 3-Jul-26 or Jul 3,
    2026, each with or without a time. Return None for any other text.
    """
    found = _DAY.fullmatch(plain_cell(text))
    if found is None:
        return None
    given = {name: said for name, said in found.groupdict().items() if said is not None}
    year = next(said for name, said in given.items() if name.endswith("year"))
    day = next(said for name, said in given.items() if name.endswith(("day", "of_month")))
    word = given.get("spelled") or given.get("named")
    number = given.get("month") or given.get("american") or given.get("european") or ""
    months = [at for at, name in enumerate(_MONTHS, 1) if word and name.startswith(word.casefold())]
    try:
        return date(
            int(year) + 2000 * (len(year) == 2), months[0] if word else int(number), int(day)
        )
    except (ValueError, IndexError):
        return None

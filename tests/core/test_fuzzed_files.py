"""No reader of files fails at a file, whatever it holds: it reads it, or refuses it in a sentence.

Files are drawn from the columns that the readers know and from cells that are odd, and real files
are changed byte by byte.
"""

from __future__ import annotations

import json
import random
from datetime import date

import pytest

import schedule
from cardsync.buying.collections.collection_cells import read_rows
from cardsync.buying.collections.collection_text import read_text
from cardsync.buying.collections.file_formats import propose, recognize
from cardsync.imports.typed_cells import read_price, read_quantity
from cardsync.platform import errors
from cardsync.prices.inputs.rule_file import read_rule_set
from cardsync.sales.lots.lot_csv import read_lots
from cardsync.sales.lots.payment_csv import read_payments
from cardsync.sales.orders import feedback, rows, sales_reports
from fuzzed import ODD_TEXTS, ODD_VALUES, Fuzz

ORDER = {"order_number": "A-1", "buyer_name": "Mia", "order_date": "07/31/2026", "total_amt": 12.5}
ITEM = {"order_number": "A-1", "sku_id": 7, "quantity": 2, "unit_price": "1.25"}
RULES = {"rules": [{"name": "All", "floor": "1.00", "adjust_bp": -100}], "settings": {}}
REPORT = {"date_from": "2026-07-01", "date_to": "2026-07-31", "report": {"gross_sales": "12.50"}}
SAMPLES = {
    "lots": b"TCGplayer Id,Quantity,Cost,Bought on\n7,2,$1.50,07/31/2026\n",
    "payments": b"Order Number,Payment Date,Total Amount,Fees\nA-1,2026-07-31,12.50,(1.50)\n",
    "collection": b"Card,Set ID,Set Name,Quantity,Foil\nBolt,LEA,Alpha,4,foil\n",
    "text": b"4 Lightning Bolt (LEA) 161\n1x Jaguar *F*\n",
    "orders": json.dumps([ORDER, ORDER | {"order_number": "A-2"}]).encode(),
    "items": json.dumps([ITEM]).encode(),
    "refunds": json.dumps([ORDER | {"refund_type": "full"}]).encode(),
    "shipping": json.dumps([{"order_number": "A-1", "item_count": 3}]).encode(),
    "feedback": json.dumps([{"order_number": "A-1", "rating": 5}]).encode(),
    "sales_report": json.dumps(REPORT).encode(),
    "rules": json.dumps(RULES).encode(),
}


def read_collection(data: bytes) -> None:
    text = read_text(data)
    if found := recognize(text.header):
        read_rows(text.rows, found, text.header)
    else:
        propose(text.header, [row.cells for row in text.rows if not row.fault])


READERS = {
    "lots": lambda data: read_lots(data, date(2026, 11, 21)),
    "payments": read_payments,
    "collection": read_collection,
    "text": read_collection,
    "feedback": feedback.read,
    "sales_report": sales_reports.read,
    "rules": lambda data: read_rule_set(data.decode("utf-8", "replace")),
}


def changed(dice: random.Random, sample: bytes) -> bytes:
    """Return the file with a few bytes or words of it replaced, repeated or left out."""
    data = bytearray(sample)
    for _ in range(dice.randrange(1, 4)):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.randrange(8))
        odd = dice.choice(
            [*ODD_TEXTS, json.dumps(dice.choice(ODD_VALUES)), "\n", ",", '"', "{", "]"]
        )
        data[start:end] = odd[:6_000].encode("utf-8", "surrogatepass")
    return bytes(data)


def cells_changed(dice: random.Random, sample: bytes) -> bytes:
    """Return the file with whole cells or values replaced."""
    if sample[:1] in b"[{":
        value = json.loads(sample)
        for one in value if isinstance(value, list) else [value, *value.get("rules", [])]:
            for name in one:
                if dice.random() < 0.4:
                    one[name] = dice.choice(ODD_VALUES)
        return json.dumps(value).encode()
    header, *lines = sample.decode().splitlines()
    made = [
        [dice.choice(ODD_TEXTS) if dice.random() < 0.4 else cell for cell in line.split(",")]
        for line in lines
    ]
    text = "\n".join([header, *(",".join(line) for line in made)])
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_file_is_read_or_refused_in_a_sentence(kind):
    read = READERS.get(kind) or (lambda data: (rows.check(data), rows.read(data, kind)))
    dice = random.Random(random.random() if schedule.DEEP else schedule.DAY)
    fuzz = Fuzz(dice.random(), {"id": 1})
    for _ in range(schedule.examples(200, schedule.count("FUZZED_FILES", 20_000, 2_000))):
        data = dice.choice([changed, cells_changed, cells_changed, lambda _, __: fuzz.file()])(
            dice, SAMPLES[kind]
        )
        said = "read"
        try:
            read(data)
        except errors.Problem as refusal:
            said = str(refusal)
        except Exception as e:
            raise AssertionError(f"{kind}: {data[:3_000]!r}") from e
        assert said


@pytest.mark.parametrize("read", [read_price, read_quantity])
def test_a_cell_of_an_inventory_is_read_or_refused(read):
    for text in ODD_TEXTS:
        try:
            read(text)
        except ValueError:
            continue

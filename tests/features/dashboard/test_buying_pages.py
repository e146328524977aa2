"""The pages of buying: a rule that is written as a form with its effect beside it, and a file whose
columns its owner names.
"""

from __future__ import annotations

import re
from collections import defaultdict

from browsers import signed_in
from builders import a_csv, a_row
from buying_builder import a_catalog, a_moxfield_file, brought, collection

RULE = {
    "name": "Rares",
    "query": "rarity:rare",
    "base": "market",
    "state": "published",
    "bands.from": ["0", "$5.00", ""],
    "bands.cash": ["40%", "50", ""],
    "bands.credit": ["50%", "60", ""],
    "bulk.cash": ["0.05", "0.01", ""],
    "bulk.credit": ["0.06", "0.01", ""],
    "bulk.rarity": ["Rare", "", ""],
    "bulk.game": ["magic", "", ""],
    "bulk_below": "$1.00",
    "grade_NM": "100",
    "grade_LP": "85",
    "stock_steps.from": ["4", ""],
    "stock_steps.less": ["10%", ""],
    "days_steps.from": ["90"],
    "days_steps.less": ["12.5%"],
    "most_copies": "8",
    "offer_cash": "30.00",
}


def rows_of(page, table):
    """The texts of a table's rows, as the page shows them."""
    body = re.search(rf'id="{table}">.*?</table>', page, re.DOTALL)[0]
    columns = defaultdict(list)
    for cell, text in re.findall(rf'name="{table}\.(\w+)" value="([^"]*)"', body):
        columns[cell].append(text)
    return list(zip(*columns.values(), strict=True))


async def test_a_rule_is_written_as_a_form_with_its_effect_beside_it(a_seller, service, tmp_path):
    products = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Alacrian Jaguar", "number": "152", "rarity": "Rare"},
    )
    seller = await a_seller(lines=["magic"])
    row = a_row(7, name="Alacrian Jaguar", set=products.set_name, number="152", market="10.00")
    await seller.import_csv(a_csv(row))
    code = products.set_code
    await brought(
        seller, a_moxfield_file({"name": "Alacrian Jaguar", "set_code": code, "number": "152"})
    )
    owner = await signed_in(seller)
    assert "New buy rule" in (await owner.get("/buying/rules/new")).text
    effect = await owner.form("/buying/rules/effect", rule_id="0", **RULE)
    assert (effect.status_code, "$19.50" in effect.text) == (200, True), effect.text[-600:]
    wrong = await owner.form("/buying/rules/effect", **RULE | {"bands.cash": ["often", "", ""]})
    assert "Tier 1: cash: &#39;often&#39; is not a percentage" in wrong.text
    saved = await owner.form("/buying/rules/0", **RULE)
    assert saved.status_code == 303, saved.text[-600:]
    [rule] = (await owner.get("/api/buying/rules")).json()["rules"]
    assert rule["bands"][1] == {"from": "5.00", "cash_bp": 5000, "credit_bp": 6000}
    assert rule["bulk"][0] == {"cash": "0.05", "credit": "0.06", "rarity": "Rare", "game": "magic"}
    assert rule["conditions"] == {"NM": 10_000, "LP": 8_500}
    page = (await owner.get(f"/buying/rules/{rule['id']}")).text
    assert rows_of(page, "bands") == [("0.00", "40%", "50%"), ("5.00", "50%", "60%"), ("", "", "")]
    assert rows_of(page, "days_steps") == [("90", "12.5%"), ("", "")]
    assert 'value="draft">Unpublish' in page
    # A row is taken away, and a blank one added, without a script; nothing is saved by that.
    fewer = await owner.form(f"/buying/rules/{rule['id']}", **RULE, action="drop:bands:0")
    assert rows_of(fewer.text, "bands") == [("$5.00", "50", "60"), ("", "", "")]
    assert "Tier: the first tier must start at 0" in fewer.text
    preview = await owner.form(f"/buying/rules/{rule['id']}", **RULE, action="preview")
    assert "Copies with this change" in preview.text
    assert (await owner.get("/api/buying/rules")).json()["rules"] == [rule]
    unpublished = await owner.form(f"/buying/rules/{rule['id']}", **RULE, action="draft")
    assert unpublished.status_code == 303
    [draft] = (await owner.get("/api/buying/rules")).json()["rules"]
    assert draft["state"] == "draft"
    published = await owner.form(f"/buying/rules/{rule['id']}", **RULE, action="publish")
    assert published.status_code == 303
    later = RULE | {"priority": "70", "enabled": "no"}
    assert (await owner.form(f"/buying/rules/{rule['id']}", **later)).status_code == 303
    [moved] = (await owner.get("/api/buying/rules")).json()["rules"]
    assert (rule["priority"], moved["priority"], moved["enabled"]) == (10, 70, False)
    again = RULE | {"enabled": "yes"}
    assert (await owner.form(f"/buying/rules/{rule['id']}", **again)).status_code == 303
    [kept] = (await owner.get("/api/buying/rules")).json()["rules"]
    assert (kept["priority"], kept["enabled"]) == (70, True)
    refused = await owner.form(f"/buying/rules/{rule['id']}", **RULE | {"query": "list:hot"})
    assert (refused.status_code, "cannot be asked" in refused.text) == (422, True)
    test = {"name": "Cheap", "search": "", "expectation": "never over 1.00"}
    assert (await owner.form("/buying/tests", **test)).status_code == 303
    assert "1 cards fail" not in (await owner.get("/buying/rules")).text
    assert "1 of 1 cards fail" in (await owner.get("/buying/rules?check=1")).text
    assert (await owner.form("/buying/presets", preset="hungry")).status_code == 303
    gone = await owner.form(f"/buying/rules/{rule['id']}/delete")
    assert gone.status_code == 303


async def test_columns_are_named_on_the_page(a_seller):
    seller = await a_seller()
    found = await brought(seller, b"Titel der Karte;Menge\nLone Hawk;2\nTwin Blade;1\n")
    owner = await signed_in(seller)
    path = f"/buying/collections/{found['id']}"
    page = (await owner.get(path)).text
    assert "Match its columns once" in page
    named = await owner.form(f"{path}/columns", name="Titel der Karte", copies="Menge")
    assert named.status_code == 303, named.text[-600:]
    await seller.service.run_jobs()
    assert (await collection(seller, found["id"]))["copies"] == 3
    page = (await owner.get(path)).text
    assert "is this?" in page
    assert "No catalog card matches." in page
    assert "Press its number" not in page
    assert "Cash" not in page
    assert "<dt>Cash</dt>" in (await owner.get(f"{path}?value=true")).text

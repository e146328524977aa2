"""`cardsync price` with rules of one's own: files read and written, queries answered, a price
explained in a terminal.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner, Result

from builders import a_csv, a_row, read_csv
from cardsync.cli import program
from cardsync.platform.logs import setup_logging
from cardsync.prices.receipts import terminal

EXPORT = a_csv(
    a_row(1, market="2.00", price="1.00", name="Lightning Bolt"),
    a_row(2, market="9.00", price="1.00", name="Black Lotus", condition="Near Mint Foil"),
    a_row(3, market="4.00", price="4.00", name="Forest"),
)


@pytest.fixture
def price(in_the_environment, monkeypatch, tmp_path):
    """`price("explain", 1)` is `cardsync price explain 1`, in a folder with `export.csv`, beside
    the tests' database.
    """
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "export.csv").write_bytes(EXPORT)

    def price(*arguments: object) -> Result:
        return CliRunner().invoke(program, ["price", *map(str, arguments)])

    yield price
    # The command wrote its log to a stream that is closed by now.
    setup_logging("warning", "json")


@pytest.fixture
def with_rules(price, tmp_path):
    """The id and new price of every changed row, and what was said."""

    def with_rules(body: object) -> tuple[dict[int, str], str]:
        (tmp_path / "rules.json").write_text(json.dumps(body))
        ran = price("export.csv", "--rules", "rules.json", "--out", "out.csv")
        assert ran.exit_code == 0, ran.output
        rows = read_csv((tmp_path / "out.csv").read_bytes())
        return {int(row["TCGplayer Id"]): row["TCG Marketplace Price"] for row in rows}, ran.output

    return with_rules


def refused(ran: Result) -> str:
    assert ran.exit_code == 1, ran.output
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    assert ran.stderr.startswith("Error: ")
    return ran.stderr


def test_a_file_of_rules_prices_like_the_routes_say(with_rules):
    rules = [{"adjust_bp": 1000, "ceiling": "5.00", "rounding": "x99"}]
    assert with_rules({"rules": rules})[0] == {1: "2.9900", 2: "5.0000", 3: "4.9900"}
    assert with_rules(rules)[0] == {1: "2.9900", 2: "5.0000", 3: "4.9900"}
    sale = {
        "name": "Half",
        "adjust_bp": -5000,
        "starts_at": "2020-01-01T00:00:00Z",
        "ends_at": "2100-01-01T00:00:00Z",
    }
    assert with_rules({"rules": [{}], "sales": [sale]})[0] == {2: "4.5000", 3: "2.0000"}
    assert with_rules({"rules": [{}], "settings": {"minimum_move": "3.00"}})[0] == {2: "9.0000"}


def test_queries_choose_the_rule_and_the_first_wins(with_rules):
    changed, said = with_rules(
        [
            {"name": "Foils", "query": "is:foil", "adjust_bp": 1000},
            {"name": "Bolts", "query": "bolt cond:NM price<=1", "adjust_amount": "0.50"},
            {"name": "Others", "query": "-bolt", "priority": 900},
        ]
    )
    assert changed == {1: "2.5000", 2: "9.9000"}
    assert "3 priced by 3 rules, 2 changed" in said


def test_a_guard_of_a_file_holds_beside_the_rule(with_rules):
    guard = {"name": "Foils", "guard": True, "query": "is:foil", "floor": "12.00"}
    changed, said = with_rules([{"adjust_bp": 1000}, guard])
    assert changed[2] == "12.0000"
    assert "priced by rule 1" in said
    assert "Foils" not in said


def test_a_name_in_the_file_means_its_card(price, with_rules, tmp_path):
    names = ("Now or Never", "Never Mind", "S:P Little Knight", "Little Knight")
    rows = [a_row(n, market="2.00", price="1.00", name=name) for n, name in enumerate(names, 1)]
    (tmp_path / "export.csv").write_bytes(a_csv(*rows))
    changed, _ = with_rules(
        [
            {"name": "Or", "query": "Now or Never", "adjust_bp": 1000},
            {"name": "Colon", "query": "S:P Little Knight", "adjust_bp": 2000},
            {"name": "Others", "priority": 900},
        ]
    )
    assert changed == {1: "2.2000", 2: "2.0000", 3: "2.4000", 4: "2.0000"}
    told = price("explain", 2, "--file", "export.csv", "--rules", "rules.json", "--json")
    assert json.loads(told.stdout)["governing_rule"]["name"] == "Others"


def test_nothing_is_left_out_silently(with_rules):
    changed, said = with_rules(
        [
            {"name": "Draft", "state": "draft"},
            {"name": "Off", "enabled": False},
            {"name": "Old ones", "query": "age>30 or is:pinned", "adjust_bp": 5000},
            {
                "name": "Dear ones",
                "query": "market>3",
                "stale": {"after_days": 1, "every_days": 1, "step_bp": 1, "limit_bp": 1},
            },
        ]
    )
    assert changed == {2: "9.0000"}
    assert "rule “Draft” is a draft and prices nothing" in said
    assert "rule “Off” is turned off and prices nothing" in said
    assert "rule “Old ones” uses age, is:pinned, which a file does not have" in said
    assert "no stale card is lowered" in said
    assert "no_rule 1" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "rules.json: line 1: this is not valid JSON"),
        ("5", "rules.json: rules: is missing"),
        ('{"rules": 5}', "rules.json: rules: must be a list"),
        ('{"rules": [], "rule": []}', "rules.json: rule: is not a field"),
        ('[{}, {"adjust": 1}]', "rules.json: rules[1].adjust: is not a field"),
        (
            '[{"floor": "2.00", "ceiling": "1.00"}]',
            "rules.json: rules[0].floor: is above the ceiling",
        ),
        ('[{"adjust_bp": 1.5}]', "rules.json: rules[0].adjust_bp: must be a whole number"),
        ('[{"id": 7}, {"id": 7}]', "rules.json: rules: two have the same ID"),
        (
            '{"rules": [], "settings": {"fee_level": "9"}}',
            "rules.json: settings.fee_level: must be one of",
        ),
        ('[{"name": "Typo", "query": "prise>1"}]', "rule “Typo”: query: "),
        ('[{"name": "Listed", "query": "list:binder"}]', "rule “Listed”: query: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(price, tmp_path, text, said):
    (tmp_path / "rules.json").write_text(text)
    ran = price("export.csv", "--rules", "rules.json", "--out", "out.csv")
    assert ran.exit_code == 1
    assert f"Error: {said}" in ran.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("preset", ["premium", "competitive", "move", "buy-box"])
def test_a_preset_written_to_a_file_prices_like_the_preset(price, tmp_path, preset):
    assert price("rules", "--preset", preset, "--out", "rules.json").exit_code == 0
    assert price("rules", "--preset", preset).stdout == (tmp_path / "rules.json").read_text()
    assert price("export.csv", "--preset", preset, "--out", "one.csv").exit_code == 0
    assert price("export.csv", "--rules", "rules.json", "--out", "two.csv").exit_code == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_an_explanation_is_a_table_of_all_steps_in_eighty_columns(price):
    ran = price("explain", 2, "--file", "export.csv")
    assert ran.exit_code == 0, ran.output
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "2: Black Lotus · Dominaria United 2 · NM Foil"
    assert [line.split()[:2] for line in lines if line[:2].strip().isdigit() and line[2:4] == "  "] == [
        [str(number), name]
        for number, name in enumerate(
            ["eligibility", "governing_rule", "price_source", "formula", "market_gate", "undercut",
             "stale_reduction", "bounds", "cap", "sale",
             "direct_minimum", "fee_gap", "rounding", "change"], start=1,
        )
    ]  # fmt: skip
    assert "The price changes from 1.00 to 1.15." in " ".join(ran.stdout.split())
    assert "no usable row with the ID 9" in refused(price("explain", 9, "--file", "export.csv"))


def test_it_names_the_rules_that_lost(price, tmp_path):
    rules = [
        {"name": "Foils", "query": "is:foil"},
        {"name": "Forests", "query": "forest"},
        {"name": "Lotuses", "query": "lotus"},
    ]
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    told = json.loads(
        price("explain", 2, "--file", "export.csv", "--rules", "rules.json", "--json").stdout
    )
    assert [(rule["name"], rule["outcome"]) for rule in told["matching_rules"]] == [
        ("Foils", "governs"),
        ("Lotuses", "lost"),
    ]
    assert told["steps"][1]["losing_candidates"] == [-3]
    said = price("explain", 2, "--file", "export.csv", "--rules", "rules.json").stdout
    assert "rule “Lotuses” (priority 3): Rule “Foils” is applied before it." in said


def test_where_the_card_is_has_to_be_said(price, monkeypatch):
    monkeypatch.delenv("CARDSYNC_API_KEY", raising=False)
    for wrong in ([], ["--file", "export.csv", "--seller", 1], ["--seller", 1, "--preset", "move"]):
        assert price("explain", 1, *wrong).exit_code == 2
    assert "CARDSYNC_API_KEY" in refused(price("explain", 1, "--server", "http://127.0.0.1:9"))
    monkeypatch.setenv("CARDSYNC_API_KEY", "csk_x")
    assert "cannot be asked" in refused(price("explain", 1, "--server", "http://127.0.0.1:9"))


async def test_a_sellers_card_and_rules_come_out_as_the_routes_have_them(price, a_seller, tmp_path):
    seller = await a_seller()
    await seller.import_csv(EXPORT)
    body = {
        "name": "Lotuses",
        "query": "lotus",
        "adjust_bp": 500,
        "state": "published",
        "priority": 5,
    }
    assert (await seller.post("/api/pricing/rules", json=body)).status_code == 201
    route = (await seller.get("/api/v1/pricing/explain/2")).json()
    told = json.loads(
        (await asyncio.to_thread(price, "explain", 2, "--seller", seller.id, "--json")).stdout
    )
    told["computed_at"] = route["computed_at"]
    assert told == route
    table = (await asyncio.to_thread(price, "explain", 2, "--seller", seller.id)).stdout
    said = " ".join(table.split())
    assert "Rule “Lotuses” is the first that matches the card." in said
    assert "The target is from an earlier run. Priced now, the card would be 9.45." in said
    await seller.service.sql(seller.id, "DELETE FROM price_run")
    table = (await asyncio.to_thread(price, "explain", 2, "--seller", seller.id)).stdout
    assert "No receipt: No sync has priced the card yet." in table
    assert (
        "there is no card 99"
        in (await asyncio.to_thread(price, "explain", 99, "--seller", seller.id)).stderr
    )
    assert (
        "there is no seller 999999999"
        in (await asyncio.to_thread(price, "explain", 1, "--seller", 999_999_999)).stderr
    )
    assert (
        await asyncio.to_thread(price, "rules", "--seller", seller.id, "--out", "rules.json")
    ).exit_code == 0
    kept = json.loads((tmp_path / "rules.json").read_text())
    listed = (await seller.get("/api/pricing/rules")).json()["rules"]
    named = ("created_at", "updated_at", "warnings")
    assert kept["rules"] == [
        {name: value for name, value in rule.items() if name not in named} for rule in listed
    ]
    ran = await asyncio.to_thread(
        price, "explain", 2, "--file", "export.csv", "--rules", "rules.json", "--json"
    )
    assert [(step["name"], step["output"]) for step in json.loads(ran.stdout)["steps"]] == [
        (step["name"], step["output"]) for step in route["steps"]
    ]


def test_a_name_does_not_steer_the_terminal_and_any_width_is_kept():
    step = {
        "name": "governing_rule",
        "input": "12345678.1234",
        "output": None,
        "summary": "A long sentence. " * 20,
    }
    told = {
        "marketplace_id": 1, "current_price": None, "target_price": None, "computed_at": "now",
        "blockers": [], "steps": [step] * 13,
        "card": {"product_name": "A\x1b[2Jb\u202ec\n", "set_name": "S", "number": "",
                 "condition": None, "printing": "Foil"},
        "matching_rules": [], "historical_breakdown": None,
    }  # fmt: skip
    for width in (20, 60, 80, 200):
        lines = list(terminal.lines(told, width))
        assert max(map(len, lines)) <= max(width, terminal.NARROWEST)
        assert not any(letter in "".join(lines) for letter in "\x1b\u202e\n")


def test_moves_beyond_the_review_limits_of_a_file_stay_as_they_are(with_rules):
    changed, said = with_rules({"rules": [{"adjust_bp": 0}], "settings": {"review_up_bp": 10_000}})
    assert changed == {1: "2.0000"}
    assert "1 move beyond your review limits, so they stay as they are" in said

"""docs/metrics.md names each metric that is exposed, with its labels and meaning, and no other;
the dashboard and the alerts in deploy/ ask for no metric that does not exist.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from cardsync.operations.processes.installation_metrics import DEATHS, GAUGES

PAGE = Path("docs/metrics.md")
RULES = Path("deploy/prometheus/alerts.yml")
BOARD = Path("deploy/grafana/cardsync.json")
# What Prometheus itself adds, and what its histograms are made of.
FOREIGN = {"up"}
PARTS = ("_bucket", "_sum", "_count")
NAME = re.compile(r"\b(?:cardsync_[a-z_]+|up)\b")


def exposed() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Kind, labels and meaning of each metric, by its name."""
    import cardsync.asgi
    import cardsync.operations.processes.worker  # noqa: F401

    found = {}
    for collector in list(REGISTRY._collector_to_names):
        for family in collector.describe() if hasattr(collector, "describe") else ():
            if family.name.startswith("cardsync_"):
                name = f"{family.name}_total" if family.type == "counter" else family.name
                labels = tuple(collector._labelnames)  # type: ignore[attr-defined]
                found[name] = (family.type, labels, family.documentation)
    for name, (meaning, labels) in GAUGES.items():
        found[name] = ("gauge", labels, meaning)
    found[f"{DEATHS[0]}_total"] = ("counter", DEATHS[2], DEATHS[1])
    return found


def printed() -> list[str]:
    return [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"
        for name, (kind, labels, meaning) in sorted(exposed().items())
    ]


def test_the_page_names_each_metric_and_no_other() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `cardsync_")]
    assert rows == printed(), "\n".join(printed())


def test_names_say_what_they_count() -> None:
    for name, (kind, _, _) in exposed().items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert kind != "histogram" or name.endswith("_seconds"), name


def asked(expression: str) -> set[str]:
    """The metrics that an expression names; label values and words of the language are none."""
    names = NAME.findall(re.sub(r'"[^"]*"', "", expression))
    return {re.sub(f"({'|'.join(PARTS)})$", "", name) for name in names}


def known() -> set[str]:
    return exposed().keys() | FOREIGN


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_each_alert_asks_for_metrics_that_exist_and_says_what_to_do() -> None:
    for rule in rules():
        assert asked(rule["expr"]), rule["alert"]
        assert asked(rule["expr"]) <= known(), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["what_to_do"].endswith(".")


@pytest.mark.parametrize(
    "name",
    [
        "CardsyncDown",
        "CardsyncDatabaseUnreachable",
        "CardsyncSlow",
        "CardsyncErrors",
        "CardsyncWorkWaits",
        "CardsyncWorkGivenUp",
        "CardsyncBackupFailed",
        "CardsyncBackupTooOld",
        "CardsyncRehearsalFailed",
        "CardsyncDiskAlmostFull",
        "CardsyncAgentsSilent",
    ],
)
def test_what_an_operator_must_be_told_has_an_alert(name: str) -> None:
    assert name in [rule["alert"] for rule in rules()]


def expressions(part: Any) -> list[str]:
    match part:
        case dict():
            own = [part["expr"]] if isinstance(part.get("expr"), str) else []
            return own + [one for value in part.values() for one in expressions(value)]
        case list():
            return [one for value in part for one in expressions(value)]
    return []


def test_the_dashboard_shows_metrics_that_exist() -> None:
    board = json.loads(BOARD.read_text())
    found = expressions(board["panels"])
    assert len(found) > 15
    for expression in found:
        assert asked(expression), expression
        assert asked(expression) <= known(), expression
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)

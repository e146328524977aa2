"""What runs is listed with allowed licences alone, and pinned packages are compared with advisories."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "requirements" / "bill.py"
spec = importlib.util.spec_from_file_location("bill", PATH)
bill = importlib.util.module_from_spec(spec)
sys.modules["bill"] = bill
spec.loader.exec_module(bill)


def test_each_package_that_runs_has_an_allowed_licence():
    assert bill.refused(bill.running()) == []


def test_the_bill_has_every_pinned_package_once():
    told = bill.sbom(bill.running(), "1.2.3")
    names = [one["purl"] for one in told["components"]]
    assert len(names) == len(set(names))
    python = {f"pkg:pypi/{name}@{version}" for name, version in bill.pinned("run.txt")}
    assert python <= set(names)
    assert any(name.startswith("pkg:npm/htmx.org@") for name in names)
    assert not any("axe-core" in name for name in names)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told == bill.sbom(bill.running(), "1.2.3")


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("AGPL-3.0-only", False),
        ("", False),
    ],
)
def test_a_licence_is_read_with_its_choices_and_sums(expression, allowed):
    assert bill.is_allowed(expression) is allowed


ONE = bill.Package("pypi", "Some_Thing", "2.4.1")


@pytest.mark.parametrize(
    ("affected", "named"),
    [
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]}, True),
        (
            {
                "ranges": [
                    {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.4.1"}]}
                ]
            },
            False,
        ),
        (
            {"ranges": [{"events": [{"introduced": "2.0"}, {"last_affected": "2.4.1"}]}]},
            True,
        ),
        (
            {
                "ranges": [
                    {"events": [{"introduced": "1"}, {"fixed": "2"}, {"introduced": "2.4"}]},
                ]
            },
            True,
        ),
        ({"versions": ["2.4.1"]}, True),
        ({"versions": ["2.4.0"]}, False),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, False),
    ],
)
def test_an_advisory_names_the_versions_of_its_ranges(affected, named):
    package = {"ecosystem": "PyPI", "name": "some-thing"}
    assert bill.affects({"package": package, **affected}, ONE) is named
    assert not bill.affects({"package": package | {"ecosystem": "npm"}, **affected}, ONE)


def test_the_audit_says_what_it_found_and_that_there_is_nothing_to_compare(tmp_path, capsys):
    assert bill.main(["audit", ""]) == 2
    assert bill.main(["audit", str(tmp_path)]) == 2
    assert "nothing was compared" in capsys.readouterr().err
    name, version = next(iter(bill.pinned("run.txt")))
    told = {"id": "X-1", "affected": [{"package": {"ecosystem": "PyPI", "name": name}}]}
    file = tmp_path / "one.json"
    file.write_text(json.dumps(told))
    assert bill.main(["audit", str(tmp_path)]) == 0
    told["affected"][0]["versions"] = [version]
    file.write_text(json.dumps(told))
    assert bill.main(["audit", str(tmp_path)]) == 1
    assert f"{name} {version}: X-1" in capsys.readouterr().out
    file.write_text(json.dumps(told | {"withdrawn": "2026-01-01T00:00:00Z"}))
    assert bill.main(["audit", str(tmp_path)]) == 2

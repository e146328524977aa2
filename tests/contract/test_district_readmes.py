"""Each district's README names its rooms and modules, and none besides."""

import re
from pathlib import Path

import pytest

import cardsync

SOURCE = Path(cardsync.__file__).parent
DISTRICTS = sorted(file.parent for file in SOURCE.glob("*/README.md"))
# docs/flow.md says what each of these holds.
CONVENTIONS = {"commands", "errors", "limits", "models", "routes", "schemas"}


def test_each_district_has_a_readme():
    folders = {file.parent for file in SOURCE.glob("*/__init__.py")}
    assert folders == set(DISTRICTS)


@pytest.mark.parametrize("district", DISTRICTS, ids=lambda folder: folder.name)
def test_a_readme_names_all_rooms_and_modules_of_its_district(district):
    text = (district / "README.md").read_text()
    named = {name.strip("/") for name in re.findall(r"`([\w/]+)`", text)}
    rooms = {path.name for path in district.iterdir() if path.is_dir()} - {"__pycache__"}
    modules = {path.stem for path in district.glob("*.py") if not path.stem.endswith("_schemas")}
    assert (rooms | modules) - {"__init__"} - CONVENTIONS - named == set()


@pytest.mark.parametrize("district", DISTRICTS, ids=lambda folder: folder.name)
def test_what_a_readme_names_is_there(district):
    text = (district / "README.md").read_text()
    gone = {
        name
        for name in re.findall(r"`([a-z_/]+)`", text)
        if not any(
            path.exists()
            for near in (district, *filter(Path.is_dir, district.iterdir()), SOURCE)
            for path in (near / name, near / f"{name}.py")
        )
    }
    assert gone == set()

"""The pack of the simulated marketplace fits its first design; the designs' pages are whole."""

from __future__ import annotations

import re

import msgspec
import pytest
from design_pairs import ELEMENTS, the_pack

from cardsync.agents.repairs import snippet
from cardsync.agents.repairs.snippet import Page
from cardsync_agent.workflow import pack
from cardsync_agent.workflow.pack import Locator
from marketplace import truth
from marketplace.pages import unmarked

PACK = the_pack()
# A picture has many of these, and any of them is covered.
MASKED = frozenset(PACK.masked)
TAGS = {"button": "button", "link": "a", "heading": "h1"}
PAGES = [(design, element) for design in truth.DESIGNS for element in truth.ELEMENTS]


def marked(page: str, name: str) -> list[int]:
    elements = snippet.read(page).elements
    return [at for at, one in enumerate(elements) if one.attributes.get("mark") == name]


def found(page: Page, locator: Locator) -> list[int]:
    """What a locator finds; of CSS only what has no word of a browser's driver in it."""
    every = range(len(page.elements))
    if locator.css:
        state = re.fullmatch(r'(.+):has-text\("(.+)"\)', locator.css)
        at = page.selected(state[1] if state else locator.css)
        return [one for one in at if not state or state[2] in page.label(one)]
    if locator.label:
        fields = [one for one in every if page.elements[one].tag in ("input", "select")]
        named = [
            one for one in every if page.elements[one].attributes.get("aria-label") == locator.label
        ]
        return [one for one in fields if locator.label in page.labels(one)] or named
    role = locator.role or ""
    return [
        one
        for one in every
        if (page.elements[one].attributes.get("role") or page.elements[one].tag)
        in (role, TAGS.get(role, role))
        and locator.name in (None, page.label(one))
    ]


@pytest.mark.parametrize("name", PACK.elements)
def test_each_locator_finds_its_element_alone(name):
    whole = truth.page(name, 1)
    places, page = marked(whole, name), snippet.read(unmarked(whole))
    for locator in PACK.elements[name].locators:
        at = found(page, locator)
        assert set(at) <= set(places) if name in MASKED else at == places, locator


@pytest.mark.parametrize("name", [name for name in PACK.elements if name not in MASKED])
def test_each_record_says_how_its_element_looks(name):
    whole, looks = truth.page(name, 1), PACK.elements[name].looks
    [at] = marked(whole, name)
    page = snippet.read(unmarked(whole))
    of = page.elements[at].attributes
    assert looks.tag == page.elements[at].tag
    assert (looks.id, looks.name, looks.type) == tuple(
        of.get(x, "") for x in ("id", "name", "type")
    )
    assert looks.classes == tuple(of.get("class", "").split())
    assert looks.text in ("", page.label(at))
    assert looks.label in ("", *page.labels(at))
    assert looks.text or looks.label or looks.id


def test_every_step_that_imports_publishes_or_adds_says_so():
    changes = {
        (name, step.name)
        for name, flow in PACK.workflows.items()
        for step in flow.steps
        if step.changes
    }
    assert changes == {
        ("stage_prices", "choose_price_file"), ("stage_prices", "upload_prices"),
        ("publish_prices", "publish_prices"), ("discard_prices", "discard_import"),
        ("quick_add", "add_card"),
    }  # fmt: skip


def test_its_names_are_those_of_the_adapter():
    assert list(pack.misnamed(PACK)) == []


@pytest.mark.parametrize("name", ["stage_prices", "publish_prices", "discard_prices", "quick_add"])
def test_a_pack_in_which_such_a_step_does_not_say_so_is_not_used(name):
    told = msgspec.to_builtins(PACK)
    for step in told["workflows"][name]["steps"]:
        step.pop("changes", None)
    with pytest.raises(pack.BadPack, match=f"{name}: no click is marked"):
        pack.read(msgspec.json.encode(told))


def test_there_is_a_workflow_for_all():
    assert set(pack.WORKFLOWS) - set(PACK.workflows) == set()
    used = {name for flow in PACK.workflows.values() for step in flow.steps
            for name in (getattr(step, "element", None), step.then.visible, step.then.gone,
                         step.then.figure)}  # fmt: skip
    turns = {name for turn in PACK.your_turn for name in turn.any_of}
    assert set(PACK.elements) == (used - {None}) | turns | MASKED


@pytest.mark.parametrize(("design", "name"), PAGES)
def test_an_element_is_marked_once_or_given_up(design, name):
    places = marked(truth.page(name, design), name)
    if name in truth.GONE.get(design, ()):
        assert places == []
    else:
        assert len(places) == 1 or (name in MASKED and places)


@pytest.mark.parametrize(("design", "name"), PAGES)
def test_pages_have_ids_once_and_names_for_all_that_is_filled_or_pressed(design, name):
    page = snippet.read(unmarked(truth.page(name, design)))
    ids = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    for at, one in enumerate(page.elements):
        if one.kind and one.attributes.get("type") != "hidden":
            assert page.labels(at), one.attributes
    assert [one.tag for one in page.elements].count("h1") == 1
    assert [one.tag for one in page.elements].count("main") == 1


def test_the_second_design_has_none_of_the_ids_of_the_first():
    for name in ELEMENTS:
        one, two = (snippet.read(truth.page(name, design)) for design in (1, 2))
        ids = [{x.attributes.get("id") for x in page.elements} - {None} for page in (one, two)]
        assert not ids[0] & ids[1], name

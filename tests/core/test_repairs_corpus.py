"""Repairs over a corpus of pages before and after a change: how many are right, wrong and missed;
and that no stranger on a page makes a right repair wrong.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repaired_pages import cases, counted, repaired

CASES = list(cases())
MOST_WRONG, LEAST_RIGHT, LEAST_RIGHT_HELD_OUT = 0.005, 0.90, 0.88
KINDS = (
    "ids renamed",
    "text changed",
    "moved into",
    "translated",
    "removed",
    "doubled",
    "redesign",
)


@pytest.fixture(scope="module")
def outcomes():
    return [(case, repaired(case)) for case in CASES]


def test_the_corpus_has_enough_of_every_change():
    pairs = {case.pair for case in CASES}
    assert len(pairs) >= 120
    for kind in KINDS:
        assert len({pair for pair in pairs if pair[1].startswith(kind)}) >= 20, kind


@pytest.mark.parametrize("remembered", [False, True], ids=["by its selector", "remembered"])
def test_wrong_repairs_are_rare_and_right_ones_are_the_rule(outcomes, remembered):
    parts = counted(outcomes)
    whole, held_out = parts["all", remembered], parts["held out", remembered]
    tuned = parts["tuned", remembered]
    for part in (whole, held_out, tuned):
        assert part.wrong <= MOST_WRONG, part.told()
    assert min(whole.right, tuned.right) >= LEAST_RIGHT, (whole.told(), tuned.told())
    assert held_out.right >= LEAST_RIGHT_HELD_OUT, held_out.told()


def test_what_is_not_there_or_is_there_twice_is_refused(outcomes):
    without = [
        outcome.verdict
        for case, outcome in outcomes
        if case.marked.count(f' mark="{case.mark}"') != 1
    ]
    assert without.count("wrong") / len(without) <= MOST_WRONG


STRANGERS = [
    "<button>Weather</button>", '<a href="/weather">Weather</a>', "<p>Weather</p>",
    '<input name="planet" placeholder="Planet">', '<input type="file" aria-label="Portrait">',
    '<label><input type="checkbox"> Daylight</label>', '<input type="password" aria-label="Pin">',
    "<select name='planet'><option>Mars</option></select>", "<ul><li>Mars</li></ul>",
    '<div class="banner" role="menu"><span role="menuitem">Weather</span></div>',
    "<details><summary>Weather</summary><button>Rain</button></details>",
    '<button aria-haspopup="menu">Weather</button>', "<form><button>Rain</button></form>",
]  # fmt: skip
BETWEEN = re.compile(r"(?<=</button>)|(?<=</div>)|(?<=</label>)|(?<=</li>)|(?<=</form>)|(?<=</a>)")


@settings(max_examples=150)
@given(st.data())
def test_a_stranger_on_the_page_never_makes_a_right_repair_wrong(data):
    case = data.draw(st.sampled_from(CASES))
    if repaired(case).verdict == "wrong":
        return
    marked = case.marked
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from([found.start() for found in BETWEEN.finditer(marked)]))
        marked = marked[:place] + data.draw(st.sampled_from(STRANGERS)) + marked[place:]
    assert repaired(replace(case, marked=marked)).verdict != "wrong", marked

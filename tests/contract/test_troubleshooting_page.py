"""docs/troubleshooting.md is what the program prints, and has every error code and doctor's line."""

import json
from pathlib import Path

from click.testing import CliRunner

from cardsync.cli import program
from cardsync.operations.troubleshooting_page import doctor_sentences, error_codes

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "troubleshooting.md"


def test_the_page_in_git_is_what_the_program_prints():
    printed = CliRunner().invoke(program, ["troubleshooting"])
    assert printed.exit_code == 0
    assert PAGE.read_text() == printed.output, "run: make openapi"


def test_the_page_has_every_code_of_the_interface():
    answered = set()

    def look(part):
        if isinstance(part, dict):
            answered.update(part.get("code", {}).get("enum", ()) if "code" in part else ())
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(json.loads((TOP / "openapi.json").read_text()))
    assert len(answered) > 50
    assert answered <= set(error_codes())


def test_each_sentence_of_the_doctor_says_what_is_wrong():
    sentences = list(doctor_sentences())
    assert len(sentences) > 20
    assert all(len(sentence.replace("…", "").split()) >= 3 for *_, sentence in sentences)

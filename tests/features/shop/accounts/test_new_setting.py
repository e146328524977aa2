"""A setting of an account is declared once (`access/declared_settings.py`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import cardsync
from another_database import another_database
from builders import environment
from cardsync.access.models import SETTINGS
from cardsync.platform.database.urls import libpq_url

TESTS = Path(__file__).parents[3]
SOURCE = Path(cardsync.__file__).parent
# These modules show, read and describe settings, and name none of them.
DOORS = (
    "access/models.py",
    "dashboard/pages/settings_pages.py",
    "dashboard/templates/settings_form.html",
    "shop/accounts/account_form.py",
    "shop/accounts/account_settings.py",
    "shop/accounts/routes.py",
    "shop/accounts/schemas.py",
)


@pytest.mark.day
def test_one_that_is_new_is_in_every_door(owner_url, settings):
    """This alone finds a door that has a list of settings of its own: it runs the program with one
    more setting, in another process.
    """
    with another_database(owner_url, "new_setting") as url:
        with psycopg.connect(libpq_url(url, role=None), autocommit=True) as owner:
            owner.execute("ALTER TABLE account ADD wrapping text NOT NULL DEFAULT 'paper'")
        told = environment(settings.model_copy(update={"database_url": url}))
        done = subprocess.run(
            [sys.executable, str(TESTS / "new_setting.py")],
            env=os.environ | told,
            capture_output=True,
            text=True,
        )
    assert done.stdout == "told\n", done.stderr


@pytest.mark.parametrize("door", DOORS)
def test_a_door_names_no_setting(door):
    words = set(re.findall(r"\b[a-z_]+\b", (SOURCE / door).read_text()))
    own = {name for name, setting in SETTINGS.items() if setting.field.api}
    assert not words & own

"""The page Operator → Card catalogs and its operations: what each game's catalog is, what the own shop
lists of it, and the buttons that let a worker install one.
"""

import re
from dataclasses import replace

import pytest
from sqlalchemy import text

from browsers import joined, operates, signed_in
from builders import a_csv, a_row
from cardsync.catalog import source_files
from cardsync.catalog.renew_catalogs import renew_due
from cardsync.operators import catalog_installs
from catalog_site import a_catalog_site

PATH = "/operator/catalogs"
# Games that no other test loads a catalog of; the second one gets none here either.
GAME, LABEL, CATEGORY = "union_arena", "Union Arena", 81
OTHER, OTHER_LABEL = "dragon_ball_fusion_world", "Dragon Ball Super: Fusion World"


@pytest.fixture
async def work(service, tmp_path, monkeypatch):
    """The work of a worker on a machine of its own; the server that stands for the sources is
    `work.site`.
    """
    monkeypatch.setattr(source_files, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(source_files, "_AGAIN_SECONDS", ())
    await _sql(service, "DELETE FROM catalog_install")
    with a_catalog_site() as site:
        given = {"data_dir": tmp_path, "catalog_mirror": site.address}
        made = replace(service.work, settings=service.settings.model_copy(update=given))
        object.__setattr__(made, "site", site)
        yield made
    await _sql(service, "DELETE FROM catalog_install")


async def _sql(service, statement):
    async with service.database.shared() as session:
        await session.execute(text(statement))


async def an_operator(a_seller):
    seller = await a_seller(lines=[GAME, OTHER])
    await operates(seller)
    return seller, await signed_in(seller)


def row(number, name, line=LABEL):
    return a_row(number, line=line, set="Rising", name=name, number=f"UA01-{number:03}")


async def test_an_operator_installs_the_catalog_of_a_game_and_sees_its_state(a_seller, work):
    seller, browser = await an_operator(a_seller)
    await seller.import_csv(a_csv(row(1, "One"), row(2, "Two")))
    page = (await browser.get(PATH)).text
    assert "2 Union Arena listings have no catalog." in " ".join(page.split())
    done = await browser.form(PATH, game=GAME, source="tcgcsv")
    assert done.headers["location"].startswith(PATH)
    page = (await browser.get(done.headers["location"])).text
    assert "1 catalog requested." in page
    assert "waits for a worker" in page
    assert 'data-hx-trigger="every 2s"' in page
    # Asked for again, nothing more waits.
    again = await browser.form(PATH, game=GAME)
    assert "Nothing changed." in (await browser.get(again.headers["location"])).text
    products = [f"{n},{w},81,7,UA01-00{n},C,Normal" for n, w in ((1, "One"), (2, "Two"))]
    work.site.has_groups(CATEGORY, (7, "Rising", products))
    assert await renew_due(work) == 1
    shown = (await browser.get("/api/operator/catalogs")).json()
    [one] = [one for one in shown["catalogs"] if one["game"] == GAME]
    assert (one["state"], one["rows"], one["source"]) == ("installed", 2, "tcgcsv")
    # What waited for it is matched without another upload.
    earlier = "UPDATE work_due SET due_at = due_at - interval '1 hour' WHERE seller_id = :id"
    await seller.service.sql(seller.id, earlier, id=seller.id)
    await seller.sweep()
    await seller.service.run_jobs()
    shown = (await browser.get("/api/operator/catalogs")).json()
    assert shown["listed"] == [{"game": GAME, "listings": 2, "matched": 2}]
    page = (await browser.get(PATH)).text
    assert "2 of 2 listings matched" in " ".join(page.split())
    assert "up to date" in page
    assert "have no catalog" not in page


async def test_a_failure_is_on_the_page_and_what_is_there_stays(a_seller, work):
    _, browser = await an_operator(a_seller)
    asked = await browser.post("/api/operator/catalogs", json={"games": [GAME]})
    assert asked.status_code == 202
    assert [one["state"] for one in asked.json()["catalogs"] if one["game"] == GAME] == ["waiting"]
    await renew_due(work)
    page = " ".join((await browser.get(PATH)).text.split())
    assert "TCGCSV did not give the file" in page
    assert "The catalog stays as it was." in page
    # Asked for once more, it is tried at once.
    asked = await browser.post("/api/operator/catalogs", json={"games": [GAME]})
    assert [one["state"] for one in asked.json()["catalogs"] if one["game"] == GAME] == ["waiting"]
    assert await renew_due(work) == 1


async def test_games_and_sources_that_there_are_not_are_refused(a_seller, work):
    _, browser = await an_operator(a_seller)
    for body, why in (
        ({"games": ["chess"]}, "no source has 'chess'"),
        ({"games": [GAME], "source": "mtgjson"}, "mtgjson has no catalog of 'union_arena'"),
        ({"games": [GAME], "source": "x"}, "'x' is no source"),
        ({"games": []}, "games"),
    ):
        refused = await browser.post("/api/operator/catalogs", json=body)
        assert refused.status_code == 422
        assert why in refused.json()["error"]


async def test_an_owner_installs_where_there_is_no_other_shop_and_nobody_else_does(
    a_seller, work, monkeypatch
):
    """The only shop of an installation has no operator to ask."""
    seller = await a_seller(lines=[OTHER])
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    report = await seller.import_csv(a_csv(row(1, "One", OTHER_LABEL)))
    path = f"/set-up/uploads/{report['id']}"
    for member in (owner, staff):
        assert (await member.get(PATH)).status_code == 403
        assert (await member.form(PATH, game=OTHER)).status_code == 403
    assert (await seller.get("/api/operator/catalogs")).status_code == 403
    page = " ".join((await owner.get(path)).text.split())
    assert "No catalog of Dragon Ball Super: Fusion World is installed" in page
    assert "An operator of this installation can install it" in page
    # Other tests made their shops in this database.
    monkeypatch.setattr(catalog_installs, "_ONE_SHOP", "SELECT true")
    page = (await owner.get(path)).text
    form = re.search(r'<form method="post" action="/operator/catalogs".*?</form>', page, re.S)[0]
    assert f'name="game" value="{OTHER}"' in form
    done = await owner.form(PATH, game=OTHER, back=path)
    assert done.headers["location"].startswith(path)
    page = " ".join((await owner.get(path)).text.split())
    assert "Dragon Ball Super: Fusion World is being installed" in page
    assert (await owner.get(PATH)).status_code == 200
    assert (await staff.get(PATH)).status_code == 403
    assert (await seller.get("/api/operator/catalogs")).status_code == 403

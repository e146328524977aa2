"""The page Operator → Card catalogs and its operations: what each game's catalog is, what the own shop
lists of it, the buttons that let a worker install one, and the files that people add.
"""

import json
import re
import uuid
from dataclasses import replace

import pytest
from sqlalchemy import text

from browsers import joined, operates, signed_in
from builders import a_csv, a_row
from cardsync.catalog import install_state, source_files
from cardsync.catalog.add_catalog_file import FOLDER, add_catalog_file
from cardsync.catalog.install_catalog import InstalledElsewhere
from cardsync.catalog.renew_catalogs import renew_due
from cardsync.catalog.sources.declared import BY_NAME
from cardsync.platform import clock
from cardsync.shop.operators import catalog_installs
from catalog_site import a_card, a_catalog_site

PATH = "/operator/catalogs"
BACK_API = "/api/operator/catalogs/back"
THIRD, THIRD_LABEL = "gundam", "Gundam"
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
    await _nothing_installed(service)
    with a_catalog_site() as site:
        given = {"data_dir": tmp_path, "catalog_mirror": site.address}
        made = replace(service.work, settings=service.settings.model_copy(update=given))
        object.__setattr__(made, "site", site)
        yield made
    await _nothing_installed(service)


async def _sql(service, statement):
    async with service.database.shared() as session:
        await session.execute(text(statement))


async def _nothing_installed(service):
    for table in ("catalog_install", "catalog_updates"):
        await _sql(service, f"DELETE FROM {table}")


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
    assert "waiting to start" in page
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
    assert "The catalog stays as it was." in page or "Nothing was changed." in page
    assert "The next try is on" in page
    # Asked for once more, it is tried at once.
    asked = await browser.post("/api/operator/catalogs", json={"games": [GAME]})
    assert [one["state"] for one in asked.json()["catalogs"] if one["game"] == GAME] == ["waiting"]
    assert await renew_due(work) == 1


async def test_a_button_says_how_much_is_downloaded_once_that_is_known(a_seller, work):
    seller, browser = await an_operator(a_seller)
    await seller.import_csv(a_csv(row(1, "One", OTHER_LABEL)))
    assert " MB<" not in (await browser.get(PATH)).text
    # It came, and was not taken: too much of it could not be read.
    work.site.has_groups(80, (7, "Rising", ["x,y,80,9,z,C,Normal"] * 90_000))
    await browser.post("/api/operator/catalogs", json={"games": [OTHER]})
    await renew_due(work)
    page = (await browser.get(PATH)).text
    buttons = [re.sub(r"<.*?>", "", one) for one in re.findall(r"<button.*?</button>", page, re.S)]
    assert any("2 MB" in one and "Install" in one for one in buttons), buttons
    assert page.count("2 MB") == 2


async def test_an_operator_goes_back_to_the_last_version(service, a_seller, work, a_set):
    """What was refused is not loaded again by itself, nor by the button for all catalogs."""
    _, browser = await an_operator(a_seller)

    async def installs(*names):
        products = [f"{n},{name},86,9,UA09-00{n},C,Normal" for n, name in enumerate(names, 1)]
        work.site.has_groups(86, (9, a_set, products))
        source_files.forget(work.settings, BY_NAME["tcgcsv"], THIRD)
        await browser.post("/api/operator/catalogs", json={"games": [THIRD]})
        await renew_due(work)

    async def shown():
        found = (await browser.get("/api/operator/catalogs")).json()["catalogs"]
        return next(one for one in found if one["game"] == THIRD)

    await installs("One")
    refused = await browser.post(BACK_API, json={"game": THIRD})
    assert refused.status_code == 422
    assert f"no earlier version of {THIRD} is kept" in refused.json()["error"]
    page = (await browser.get(PATH)).text
    assert "Go back to" not in page
    await installs("One", "Two")
    assert (await shown())["earlier"]["rows"] == 1
    page = " ".join((await browser.get(PATH)).text.split())
    assert f"Go back to the last version: {THIRD_LABEL}" in page
    done = await browser.form(f"{PATH}/back", version=f"{THIRD}/tcgcsv")
    page = " ".join((await browser.get(done.headers["location"])).text.split())
    assert "We load the last version in a few minutes" in page
    assert f"Restoring the last version of {THIRD_LABEL}" in page
    # Asked for again, nothing more waits.
    again = await browser.form(f"{PATH}/back", version=f"{THIRD}/tcgcsv")
    assert "Nothing changed." in (await browser.get(again.headers["location"])).text
    assert await renew_due(work) == 1
    one = await shown()
    assert (one["state"], one["rows"], one["refused"]["rows"]) == ("held", 1, 2)
    assert one["earlier"] is None
    page = " ".join((await browser.get(PATH)).text.split())
    assert "gone back" in page
    assert "isn’t loaded again by itself; a newer one is." in page
    assert "Update all" not in page
    await installs("One", "Two")
    one = await shown()
    assert (one["state"], one["rows"], one["refused"]) == ("installed", 2, None)
    asked = await browser.post(BACK_API, json={"game": THIRD, "source": "tcgcsv"})
    assert asked.status_code == 202
    [one] = [one for one in asked.json()["catalogs"] if one["game"] == THIRD]
    assert (one["state"], one["goes_back"]) == ("waiting", True)


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
        asked = await member.form(f"{PATH}/back", version=f"{OTHER}/tcgcsv")
        assert asked.status_code == 403
        assert (await member.post(BACK_API, json={"game": OTHER})).status_code == 403
    assert (await seller.get("/api/operator/catalogs")).status_code == 403
    page = " ".join((await owner.get(path)).text.split())
    assert "No catalog for Dragon Ball Super: Fusion World is installed" in page
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


FILES = f"{PATH}/files"
FILES_API = "/api/operator/catalogs/files"


def a_file(set_name, *names, game=OTHER):
    lines = ["game,set_name,product_name,number"]
    lines += [f"{game},{set_name},{name},UA02-{at:03}" for at, name in enumerate(names)]
    return "\n".join(lines).encode()


@pytest.fixture
def a_set():
    return f"Set {uuid.uuid4().hex}"


@pytest.fixture
def names(service, a_set):
    async def found():
        async with service.database.shared() as session:
            sql = "SELECT product_name FROM product WHERE set_name = :set ORDER BY id"
            return [*await session.scalars(text(sql), {"set": a_set})]

    return found


async def send(browser, body, name="cards.csv", **fields):
    token = {"csrf_token": browser.session["csrf_token"]}
    return await browser.http.post(FILES, data=token | fields, files={"file": (name, body)})


async def shown_files(browser):
    return (await browser.get("/api/operator/catalogs")).json()["files"]


async def waiting_objects(work):
    return await work.store.keys(f"{FOLDER}/")


async def test_an_operator_adds_a_catalog_as_a_file_and_sees_how_it_ends(
    service, a_seller, work, a_set, names
):
    _, browser = await an_operator(a_seller)
    sent = await send(browser, a_file(a_set, "One", "Two", ""), "C:\\my cards.csv")
    assert sent.status_code == 303
    assert sent.headers["location"].startswith(PATH)
    page = (await browser.get(sent.headers["location"])).text
    assert "File received." in page
    assert "Adding my cards.csv" in page
    assert 'data-hx-trigger="every 2s"' in page
    assert await names() == []
    # One record of three is too many; one of eleven is left out.
    await renew_due(work)
    page = " ".join((await browser.get(PATH)).text.split())
    assert "my cards.csv: 1 of 3 records cannot be read (row 3: product_name is missing)" in page
    assert "Nothing was changed." in page
    await send(browser, a_file(a_set, *"abcdefghij", ""))
    assert await renew_due(work) == 1
    assert await names() == [*"abcdefghij"]
    page = " ".join((await browser.get(PATH)).text.split())
    assert "10 printings, and 1 record left out" in page
    [first, second] = await shown_files(browser)
    assert (first["name"], first["state"], first["rows"]) == ("my cards.csv", "failed", 0)
    assert (second["name"], second["state"]) == ("cards.csv", "added")
    assert (second["rows"], second["skipped"]) == (10, 1)
    assert await waiting_objects(work) == []
    # It is nobody's to renew, and a day later it is no news.
    for column in ("checked_at", "failed_at"):
        earlier = f"UPDATE catalog_install SET {column} = {column} - interval '8 days'"
        await _sql(service, earlier)
    assert await renew_due(work) == 0
    assert await shown_files(browser) == []


def scryfall_like(set_name, count):
    return [a_card(set_name, f"Card {at}", at) for at in range(count)]


BAD = {
    "cut.json": (
        lambda set_name: json.dumps(scryfall_like(set_name, 30)).encode()[:-40],
        "cut.json is no whole JSON file",
    ),
    "other.json": (lambda _: b'[{"a": 1}]', "the format of other.json is unknown"),
    "list.csv": (lambda _: b"Name,Price\nOne,1\n", "list.csv lacks the columns game, set_name"),
    "none.csv": (lambda set_name: a_file(set_name), "none.csv: 0 of 0 records cannot be read"),
    "long.csv": (
        lambda set_name: a_file(set_name, "One", *[""] * 250_000),
        "long.csv holds too few records that can be used; row 2: product_name is missing",
    ),
    "game.csv": (lambda set_name: a_file(set_name, "One", game="chess"), "chess is not a known"),
    "no text.csv": (lambda _: bytes(range(256)) * 50, "no text.csv"),
    "cut.csv.gz": (lambda _: b"\x1f\x8b\x08\0\0\0", "cut.csv.gz cannot be read"),
    "cut.json.xz": (lambda _: b"\xfd7zXZ", "cut.json.xz"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_file_changes_nothing_and_is_not_tried_again(
    a_seller, work, a_set, names, name
):
    make, why = BAD[name]
    _, browser = await an_operator(a_seller)
    assert (await send(browser, make(a_set), name)).status_code == 303
    assert await renew_due(work) == 1
    [file] = await shown_files(browser)
    assert (file["state"], file["rows"]) == ("failed", 0)
    assert why in file["failure"]
    assert await names() == []
    assert await waiting_objects(work) == []
    assert await renew_due(work) == 0


async def test_what_is_no_catalog_by_its_name_or_size_is_refused_at_once(
    a_seller, work, a_set, limited
):
    _, browser = await an_operator(a_seller)
    limited("CATALOG_FILE_BYTES", 1_000)
    for name, body, status, why in (
        (
            "photo.png",
            b"x",
            422,
            "photo.png cannot be a catalog: its name must end in .json or .csv",
        ),
        (".csv", b"x", 422, "cannot be a catalog"),
        ("empty.csv", b"", 422, "choose a file that is not empty"),
        ("large.csv", a_file(a_set, *["x" * 50] * 50), 413, "larger than 1,000 bytes"),
    ):
        answer = await browser.post(FILES_API, params={"name": name}, content=body)
        assert answer.status_code == status
        assert why in answer.json()["error"]
        page = await send(browser, body, name)
        assert page.status_code == status
        assert why.lower() in page.text.lower()
    token = {"csrf_token": browser.session["csrf_token"]}
    nothing = await browser.http.post(FILES, data=token, files={"other": ("a.csv", b"x")})
    assert "Choose a catalog file first" in nothing.text
    assert await shown_files(browser) == []
    assert await waiting_objects(work) == []


async def test_who_may_not_install_adds_no_file(a_seller, work, a_set, names, monkeypatch):
    seller = await a_seller(lines=[OTHER])
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    for member in (owner, staff):
        assert (await send(member, a_file(a_set, "One"))).status_code == 403
        refused = await member.post(FILES_API, params={"name": "a.csv"}, content=b"x")
        assert refused.status_code == 403
    by_key = await seller.post(FILES_API, params={"name": "a.csv"}, content=b"x")
    assert by_key.status_code == 403
    assert await waiting_objects(work) == []
    # Other tests made their shops in this database.
    monkeypatch.setattr(catalog_installs, "_ONE_SHOP", "SELECT true")
    forged = await owner.http.post(FILES, data={}, files={"file": ("a.csv", a_file(a_set, "One"))})
    assert forged.status_code == 403
    taken = await owner.post(FILES_API, params={"name": "a.csv"}, content=a_file(a_set, "One"))
    assert taken.status_code == 202
    assert [file["state"] for file in taken.json()["files"]] == ["waiting"]
    assert (await staff.post(FILES_API, params={"name": "a.csv"}, content=b"x")).status_code == 403
    await renew_due(work)
    assert await names() == ["One"]


async def test_a_worker_that_dies_with_a_file_is_followed_by_another(
    service, a_seller, work, a_set, names
):
    _, browser = await an_operator(a_seller)
    await send(browser, a_file(a_set, "One", "Two"))
    [(game, place, _)] = await _due(service)
    held = await install_state.claim(service.database, game, place, "a worker that died")
    assert held
    # Nobody else is at it, and the one who comes too soon takes nothing away.
    assert await renew_due(work) == 0
    with pytest.raises(InstalledElsewhere):
        await add_catalog_file(work, place)
    assert [file["state"] for file in await shown_files(browser)] == ["running"]
    assert len(await waiting_objects(work)) == 1
    await _sql(service, "UPDATE catalog_install SET held_until = now()")
    assert await renew_due(work) == 1
    assert await names() == ["One", "Two"]
    assert await waiting_objects(work) == []


async def _due(service):
    async with service.database.shared() as session:
        return await install_state.due(session, clock.now(), None)


async def test_catalogs_are_updated_every_night_and_an_old_one_is_told_where_that_is_chosen(
    a_seller, work, service
):
    seller, browser = await an_operator(a_seller)
    await seller.set(time_zone="America/New_York")
    work.site.has_groups(CATEGORY, (7, "Rising", ["1,One,81,7,UA01-001,C,Normal"]))
    await browser.form(PATH, game=GAME, source="tcgcsv")
    assert await renew_due(work) == 1
    age = "UPDATE catalog_install SET checked_at = checked_at - interval '{} hours'"
    await _sql(service, age.format(30))
    assert await renew_due(work) == 0
    page = (await browser.get(PATH)).text
    assert "They are updated every 7 days now." in page
    assert "Tell me when one is older than 14 days" in page
    done = await browser.form(f"{PATH}/updates", nightly="true", tell="true")
    page = (await browser.get(done.headers["location"])).text
    assert re.search(r'name="nightly"[^>]*checked', page)
    assert "Tell me when one is older than 7 days" in page
    assert await renew_due(work) == 1
    assert await renew_due(work) == 0

    async def told():
        found = (await browser.get("/api/today")).json()["conditions"]
        return [one["kind"] for one in found].count("catalog_old")

    await _sql(service, age.format(24 * 6))
    assert await told() == 0
    await _sql(service, age.format(24 * 2))
    assert await told() == 1
    answer = await browser.send("PATCH", "/api/operator/catalogs", json={"tell_when_old": False})
    shown = answer.json()
    assert (shown["nightly"], shown["tell_when_old"], shown["old_after_days"]) == (True, False, 7)
    assert await told() == 0
    same = await browser.form(f"{PATH}/updates", nightly="true")
    assert "Nothing changed." in (await browser.get(same.headers["location"])).text
    answer = await browser.send("PATCH", "/api/operator/catalogs", json={"nightly": False})
    assert (answer.json()["nightly"], answer.json()["renewal_days"]) == (False, 7)
    feed = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    assert feed[0]["action"] == "operator.catalog_updates_changed"

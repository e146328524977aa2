"""Pictures of cards: from the addresses of catalogs and of the seller's file to the pages' own
origin. A host of this machine stands for the others.
"""

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.platform.work import runner
from cardsync.stock.pictures import ask, fetch_pictures
from cardsync.stock.pictures.encoder import encoder
from inline_jobs import InlineJobs
from orders_builder import an_item, an_order
from pictures_builder import a_bomb, a_picture, a_picture_site, size_of

LATER = timedelta(seconds=6)


@pytest.fixture
async def site():
    async with a_picture_site() as site:
        yield site


@pytest.fixture
async def pictured(service, site):
    """The service with its pictures on, from the site alone."""
    settings = service.settings.model_copy(
        update={
            "picture_hosts": site.host,
            "picture_pause_seconds": 0,
            "development_clients": True,
        }
    )
    work = replace(service.work, settings=settings)
    async with InlineJobs.open(work) as jobs:
        yield replace(service, work=work, jobs=jobs)


@pytest.fixture
async def seller(a_seller, pictured):
    seller = await a_seller(lines=["magic"])
    return replace(seller, service=pictured)


async def a_product(service, picture_url=None, marketplace_product_id=None, **columns):
    """A product of the catalog; returns its id."""
    name = f"Card {uuid.uuid4().hex}"
    async with service.database.shared() as session:
        return await session.scalar(
            text("""
                INSERT INTO product (identity, game, set_name, set_code, product_name, number,
                    rarity, language, picture_url, marketplace_product_id)
                VALUES (md5(random()::text), 'magic', 'Beta', :code, :name, '7', 'R', 'en', :url,
                    :id)
                RETURNING id
            """),
            {
                "name": name,
                "url": picture_url,
                "id": marketplace_product_id,
                "code": columns.get("set_code", "LEB"),
            },
        )


async def belongs(seller, card, product_id):
    await seller.service.sql(
        seller.id,
        "UPDATE card SET product_id = :product WHERE seller_id = :seller AND listing_id = :id",
        product=product_id,
        seller=seller.id,
        id=card,
    )


async def has_cards(seller, *products, **cells):
    """Import a card of each product, the first one the dearest, and note what they lack."""
    rows = [a_row(n, price=f"{20 - n}.00", **cells) for n in range(1, len(products) + 1)]
    await seller.import_csv(a_csv(*rows))
    for n, product in enumerate(products, 1):
        await belongs(seller, n, product)


async def fetched(seller, turns=1):
    """Let the sweep find the marks and the jobs run, so many times."""
    for _ in range(2 * turns):
        clock.shift(LATER)
        await seller.sweep()
        await seller.service.run_jobs()


async def card_of(seller, marketplace_id=1):
    return next(card for card in await seller.cards() if card["marketplace_id"] == marketplace_id)


@pytest.mark.night
async def test_a_picture_of_the_catalog_is_fetched_once_for_all_sellers(seller, site, a_seller):
    product = await a_product(seller.service, site.shows("a.jpg"))
    await has_cards(seller, product)
    browser = await signed_in(seller)
    before = await browser.get(f"/img/{product}/small")
    await fetched(seller)
    sizes = {}
    for size in ("small", "medium", "large"):
        answer = await browser.get(f"/img/{product}/{size}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        sizes[size] = size_of(answer.content)
    assert sizes == {"small": (73, 102), "medium": (146, 203), "large": (488, 680)}
    assert before.headers["content-type"].startswith("image/svg+xml")
    assert before.headers["cache-control"] == "private, max-age=300"
    other = replace(await a_seller(lines=["magic"]), service=seller.service)
    await has_cards(other, product)
    await fetched(other)
    seen = await (await signed_in(other)).get(f"/img/{product}/small")
    assert seen.headers["content-type"] == "image/webp"
    assert site.asked == ["/a.jpg"]


@pytest.mark.night
async def test_a_browser_that_has_the_picture_gets_no_bytes(seller, site):
    product = await a_product(seller.service, site.shows("a.jpg"))
    await has_cards(seller, product)
    await fetched(seller)
    browser = await signed_in(seller)
    first = await browser.get(f"/img/{product}/small")
    again = await browser.get(
        f"/img/{product}/small", headers={"If-None-Match": f"W/{first.headers['etag']}"}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == first.headers["cache-control"]


async def test_the_stand_in_shows_set_number_and_game_and_no_markup_of_a_name(seller):
    product = await a_product(seller.service, set_code="<b>&\x01")
    browser = await signed_in(seller)
    drawn = (await browser.get(f"/img/{product}/medium")).text
    assert "&lt;b&gt;&amp;" in drawn
    assert "\x01" not in drawn
    assert ">7<" in drawn
    assert "#6d4a26" in drawn
    unknown = await browser.get("/img/999999999/medium")
    assert unknown.status_code == 200
    assert "<svg" in unknown.text


@pytest.mark.night
async def test_a_provisional_product_shows_nothing_of_the_row_it_was_made_of(seller, a_seller):
    await seller.import_csv(a_csv(a_row(1, number="SECRET1")))
    card = await card_of(seller)
    own = await signed_in(seller)
    assert "SECRET1" in (await own.get(f"/img/cards/{card['id']}/small")).text
    item = await an_item(seller, await an_order(seller), sku_id=1)
    assert "SECRET1" in (await own.get(f"/img/items/{item}/small")).text
    stranger = await signed_in(await a_seller(lines=["magic"]))
    assert "SECRET1" not in (await stranger.get(f"/img/items/{item}/small")).text
    assert "SECRET1" not in (await stranger.get(f"/img/{card['product_id']}/small")).text
    assert "SECRET1" not in (await stranger.get(f"/img/cards/{card['id']}/small")).text


async def test_who_is_not_signed_in_gets_no_picture_and_a_size_that_is_none_is_not_there(seller):
    product = await a_product(seller.service)
    async with seller.service.client() as stranger:
        assert (await stranger.get(f"/img/{product}/small")).status_code == 401
    assert (await seller.get(f"/img/{product}/small")).status_code == 403
    browser = await signed_in(seller)
    assert (await browser.get(f"/img/{product}/huge")).status_code == 404
    assert (await browser.get(f"/img/{product}/..%2f..%2fsecret")).status_code == 404


async def test_a_sellers_own_photo_is_that_sellers_alone(seller, site, a_seller):
    product = await a_product(seller.service, site.shows("catalog.jpg", a_picture(color="navy")))
    photo = site.shows("own.jpg", a_picture(600, 400, color="red"))
    await has_cards(seller, product, photo=photo, title="Signed")
    await fetched(seller)
    card = await card_of_custom(seller)
    browser = await signed_in(seller)
    own = await browser.get(f"/img/cards/{card}/large")
    shared = await browser.get(f"/img/{product}/large")
    assert size_of(own.content)[0] > size_of(own.content)[1]
    assert own.headers["cache-control"] == "private, max-age=86400"
    # No page of another seller shows it, and the product keeps the catalog's picture.
    assert size_of(shared.content) == (488, 680)
    stranger = await signed_in(await a_seller(lines=["magic"]))
    seen = await stranger.get(f"/img/cards/{card}/large")
    assert seen.headers["content-type"].startswith("image/svg+xml")


async def card_of_custom(seller):
    [row] = await seller.service.sql(
        seller.id, "SELECT id FROM card WHERE seller_id = :id AND custom", id=seller.id
    )
    return row["id"]


@pytest.mark.night
async def test_a_photo_that_no_card_has_any_more_is_deleted(seller, site):
    photo = site.shows("own.jpg")
    await seller.import_csv(a_csv(a_row(1, photo=photo, title="Signed")))
    await fetched(seller)
    folder = f"pictures/u{seller.id}"
    assert len(await seller.service.objects(folder)) == 3
    await seller.import_csv(a_csv(a_row(1, title="Signed")))
    await fetched(seller)
    assert await seller.service.objects(folder) == []
    assert await addresses(seller, "card_photo") == {}


@pytest.mark.night
async def test_the_marketplaces_picture_that_a_file_names_is_shared(seller, pictured):
    """Nothing is fetched: its host is not listed here. What the file names is only an id."""
    url = "https://tcgplayer-cdn.tcgplayer.com/product/12345_in_1000x1000.jpg"
    settings = pictured.work.settings.model_copy(
        update={"picture_hosts": "tcgplayer-cdn.tcgplayer.com"}
    )
    await seller.import_csv(
        a_csv(a_row(1, photo=url), a_row(2, photo="https://elsewhere.example/product/1_a.jpg"))
    )
    await noted(seller, replace(pictured.work, settings=settings))
    assert "https://tcgplayer-cdn.tcgplayer.com/product/12345_400w.jpg" in await addresses(seller)
    assert await addresses(seller, "card_photo") == {}


async def noted(seller, work):
    """Note the addresses with these settings, and no more."""
    await runner.work_off_one(ask.STREAM, work, seller.id)


async def addresses(seller, table="picture"):
    rows = await seller.service.sql(seller.id, f"SELECT * FROM {table}")
    return {row["address"]: row for row in rows}


async def test_pictures_are_off_without_hosts(service, a_seller, site):
    seller = await a_seller(lines=["magic"])
    product = await a_product(service, site.shows("a.jpg"))
    await has_cards(seller, product)
    streams = await service.sql(
        seller.id,
        "SELECT stream FROM work_due WHERE seller_id = :id AND stream LIKE 'picture%'",
        id=seller.id,
    )
    assert streams == []
    # A mark from the time when they were on is worked off, and asks nobody.
    async with service.database.tenant(seller.id) as session:
        await ask.ask_for_pictures(session, seller.id)
    await fetched(seller)
    assert site.asked == []


@pytest.mark.night
async def test_the_dearest_cards_are_first_and_a_host_is_asked_only_so_often(seller, site):
    cheap = await a_product(seller.service, site.shows("b.jpg"))
    dear = await a_product(seller.service, site.shows("a.jpg"))
    await has_cards(seller, dear, cheap)
    settings = seller.service.work.settings.model_copy(update={"picture_pause_seconds": 600})
    work = replace(seller.service.work, settings=settings)
    await noted(seller, work)
    clock.shift(LATER)
    await off(work, seller)
    assert site.asked == ["/a.jpg"]
    await off(work, seller)
    assert site.asked == ["/a.jpg"]
    clock.shift(timedelta(minutes=10))
    await off(work, seller)
    assert site.asked == ["/a.jpg", "/b.jpg"]


async def off(work, seller):
    return await runner.work_off_one(fetch_pictures.STREAM, work, seller.id)


async def test_two_workers_ask_for_each_picture_once(seller, site):
    products = [await a_product(seller.service, site.shows(f"{n}.jpg")) for n in range(12)]
    await has_cards(seller, *products)
    await noted(seller, seller.service.work)
    clock.shift(LATER)
    await asyncio.gather(*(off(seller.service.work, seller) for _ in range(4)))
    assert sorted(site.asked) == sorted(f"/{n}.jpg" for n in range(12))
    kept = await addresses(seller)
    assert all(kept[f"http://{site.host}/{n}.jpg"]["digest"] for n in range(12))


async def test_a_worker_that_dies_in_the_middle_costs_a_pause(seller, site):
    product = await a_product(seller.service, site.shows("a.jpg"))
    await has_cards(seller, product)
    await noted(seller, seller.service.work)
    clock.shift(LATER)
    hosts = [site.host]
    claimed = await fetch_pictures.claim(seller.service.database, seller.id, hosts, 0)
    assert claimed is not None
    # It was claimed, and nothing came of it. Nobody asks again before the pause is over.
    assert await fetch_pictures.claim(seller.service.database, seller.id, hosts, 0) is None
    clock.shift(timedelta(minutes=11))
    await off(seller.service.work, seller)
    # Some files may be there from the first try.
    again = replace(claimed, host_failures=0)
    async with encoder() as encode:
        await fetch_pictures.fetch_one(seller.service.work, encode, again)
    browser = await signed_in(seller)
    picture = await browser.get(f"/img/{product}/small")
    assert picture.headers["content-type"] == "image/webp"


HOSTILE = {
    "a bomb": {"body": a_bomb(), "kind": "image/png"},
    "a bomb of one row": {"body": a_picture(20_000, 20), "kind": "image/jpeg"},
    "a page": {"body": b"<html><script>alert(1)</script>", "kind": "text/html"},
    "a page that says it is a picture": {"body": b"<html><script>alert(1)</script>"},
    "a drawing": {"body": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "kind": "image/svg+xml"},
    "a redirect inside": {"status": 302, "headers": {"Location": "http://169.254.169.254/"}},
    "a cut picture": {"body": a_picture()[:900]},
    "nothing": {"body": b""},
    "a dot": {"body": a_picture(1, 1)},
    "another form": {"body": a_picture(form="TIFF"), "kind": "image/png"},
    "too many bytes": {"body": b"\xff\xd8" + b"x" * 8_100_000},
    "packed": {"headers": {"Content-Encoding": "gzip"}},
    "missing": {"status": 404},
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_picture_leaves_the_stand_in_and_is_left_alone(seller, site, answer):
    bad = await a_product(seller.service, site.shows("bad", **answer))
    good = await a_product(seller.service, site.shows("good.jpg"))
    await has_cards(seller, bad, good)
    await fetched(seller)
    browser = await signed_in(seller)
    kinds = [
        (await browser.get(f"/img/{product}/small")).headers["content-type"].partition(";")[0]
        for product in (bad, good)
    ]
    assert site.asked.count("/bad") == 1
    if answer.get("body") == HOSTILE["a bomb of one row"]["body"]:
        assert kinds[1] == "image/webp"
    else:
        assert kinds == ["image/svg+xml", "image/webp"]
    clock.shift(timedelta(days=2))
    await fetched(seller)
    assert site.asked.count("/bad") == 1


async def test_a_picture_without_an_end_makes_its_host_rest_and_no_other_wait(
    seller, site, monkeypatch
):
    monkeypatch.setattr(fetch_pictures, "ASKED", replace(fetch_pictures.ASKED, seconds=0.3))
    bad = await a_product(seller.service, site.shows("bad", forever=True))
    good = await a_product(seller.service, site.shows("good.jpg"))
    await has_cards(seller, bad, good)
    await noted(seller, seller.service.work)
    clock.shift(LATER)
    await off(seller.service.work, seller)
    assert site.asked == ["/bad"]
    # The host rests, and then the other picture has its turn.
    clock.shift(timedelta(seconds=31))
    await off(seller.service.work, seller)
    assert site.asked == ["/bad", "/good.jpg"]
    browser = await signed_in(seller)
    good = await browser.get(f"/img/{good}/small")
    assert good.headers["content-type"] == "image/webp"


@pytest.mark.night
async def test_a_host_that_is_away_is_asked_ever_less(seller, site):
    product = await a_product(seller.service, site.shows("a.jpg", status=503))
    await has_cards(seller, product)
    for _ in range(20):
        await fetched(seller)
    assert len(site.asked) == 1
    site.answers["/a.jpg"].status = 200
    clock.shift(timedelta(minutes=15))
    await fetched(seller)
    assert len(site.asked) == 2
    browser = await signed_in(seller)
    assert (await browser.get(f"/img/{product}/small")).headers["content-type"] == "image/webp"


async def test_this_machine_is_asked_for_developers_alone(seller, pictured, site):
    product = await a_product(seller.service, site.shows("a.jpg"))
    await has_cards(seller, product)
    settings = pictured.work.settings.model_copy(update={"development_clients": False})
    work = replace(pictured.work, settings=settings)
    await noted(seller, work)
    await off(work, seller)
    assert site.asked == []
    await has_cards(seller, product, await a_product(seller.service, site.shows("b.jpg")))
    await noted(seller, pictured.work)
    await off(pictured.work, seller)
    assert site.asked == ["/b.jpg"]


@pytest.mark.parametrize("table", ["picture", "card_photo"])
async def test_an_address_of_another_host_is_not_fetched(seller, pictured, site, table):
    """A row says a host that is listed, and an address of another: both are of this machine."""
    async with a_picture_site() as other:
        secret = other.shows("latest/meta-data")
        await seller.service.sql(
            seller.id,
            f"INSERT INTO {table} ({'seller_id, ' * (table == 'card_photo')}address, host, next_at)"
            f" VALUES ({':seller, ' * (table == 'card_photo')}:address, :host, now())",
            seller=seller.id,
            address=secret,
            host=site.host,
        )
        await has_cards(seller, await a_product(seller.service, site.shows("a.jpg")))
        await noted(seller, pictured.work)
        await off(pictured.work, seller)
        assert (other.asked, site.asked) == ([], ["/a.jpg"])


async def test_a_redirect_is_not_followed(seller, site):
    async with a_picture_site() as other:
        away = other.shows("b.jpg")
        url = site.shows("a.jpg", status=302, headers={"Location": away})
        await has_cards(seller, await a_product(seller.service, url))
        await fetched(seller)
        assert (site.asked, other.asked) == (["/a.jpg"], [])


@pytest.mark.night
@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/a.jpg",
        "http://169.254.169.254/latest/meta-data",
        "https://cards.scryfall.io.evil.example/a.jpg",
        "https://user@cards.scryfall.io/a.jpg",
        "https://cards.scryfall.io:22/a.jpg",
        "file:///etc/passwd",
        "//cards.scryfall.io/a.jpg",
        "javascript:alert(1)",
    ],
)
async def test_an_address_of_no_listed_host_is_not_even_noted(seller, pictured, url):
    settings = pictured.work.settings.model_copy(update={"picture_hosts": "cards.scryfall.io"})
    product = await a_product(seller.service, url)
    await has_cards(seller, product, photo=url, title="Signed")
    await noted(seller, replace(pictured.work, settings=settings))
    assert url not in await addresses(seller)
    assert url not in await addresses(seller, "card_photo")


async def test_a_picture_keeps_no_place_and_no_camera():
    exif = b"Exif\0\0" + b"MM\0*\0\0\0\x08\0\x01\x01\x0f\0\x02\0\0\0\x0dSECRET CAMERA\0"
    async with encoder() as encode:
        made = await encode.make(a_picture(exif=exif))
    for content in made.values():
        assert b"SECRET" not in content
        assert b"EXIF" not in content


@pytest.mark.night
async def test_a_small_picture_is_not_made_larger():
    async with encoder() as encode:
        made = await encode.make(a_picture(100, 140, form="PNG"))
    assert {size: size_of(content) for size, content in made.items()} == {
        "large": (100, 140),
        "medium": (100, 140),
        "small": (73, 102),
    }

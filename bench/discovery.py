"""`python bench/discovery.py [--products 500000] [--sellers 200] [--listed 2000000] [--rounds
200]`: requests of 25 references over HTTP against all shared catalogs and generated products.

Naive: a LIKE scan of the catalog for each reference. Truth: every asked printing is known, so the
answer is right if it names that printing, or lists it, or says that it lists only some.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl
import psutil

import ground
from cardsync.catalog.load_catalog import load
from cardsync.network import availability, offers
from cardsync.operations.processes.child import Child
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from ground import Client, Ground, Report

# Behind our own modules: both folders have one that is called pages.
sys.path.append(str(ground.HERE.parent / "tests"))

from sent_statements import counting

PATH = "/api/discovery/availability"
AT_ONCE = 25
Reference = dict[str, str]
Product = tuple[int, str, str, str, str, str | None]


def _more_products(made: Ground, wanted: int) -> None:
    """Add catalogs of words that no real card has: real names with their letters moved on."""
    with made.admin() as connection:
        rows = connection.execute(
            "SELECT game, set_name, set_code, product_name, number, rarity, finish, language"
            " FROM product"
        ).fetchall()
    names = [
        "game",
        "set_name",
        "set_code",
        "product_name",
        "number",
        "rarity",
        "finish",
        "language",
    ]
    real = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    height, moved = real.height, 0
    while height < wanted:
        moved += 3
        table = str.maketrans(
            "abcdefghijklmnopqrstuvwxyz",
            "".join(chr(97 + (n + moved) % 26) for n in range(26)),
        )
        made_up = real.head(wanted - height).with_columns(
            pl.col("set_name") + f" {moved}",
            product_name=pl.Series(
                [name.lower().translate(table) for name in real["product_name"]]
            ).head(wanted - height),
        )
        path = made.folder / f"more-{moved}.parquet"
        made_up.write_parquet(path)

        async def run(database: Database, path: Path = path) -> None:
            await load(database, path, "auto", None, lambda _: None)

        made.in_database(run)
        height += made_up.height


def _offers(made: Ground, sellers: int, wanted: int) -> None:
    with made.admin() as connection:
        counted = connection.execute("SELECT count(*) FROM product").fetchone()
        total = counted[0] if counted else 0
        connection.execute(
            "INSERT INTO network_seller (seller_id, exposed, store_name, refreshed_at)"
            " SELECT 1000000 + n, n %% 10 > 0, 'Shop ' || n, now() FROM generate_series(1, %s) n",
            (sellers,),
        )
        connection.execute(
            """
            INSERT INTO network_offer (product_id, seller_id, condition, price, quantity)
            SELECT p.id, 1000000 + s.n, 'NM', (1 + (p.id * s.n) %% 5000) / 100.0,
              1 + (p.id + s.n) %% 9
              FROM generate_series(1, %s) AS s (n)
              JOIN product p ON (hashint8(p.id * 1000 + s.n) & 2147483647) %% 1000000 < %s
            """,
            (sellers, 1_000_000 * wanted // sellers // max(1, total)),
        )
        connection.execute("VACUUM ANALYZE network_offer, network_seller, product, catalog_name")
        connection.execute("ANALYZE catalog_typo, catalog_set")
        count = connection.execute("SELECT count(*) FROM network_offer").fetchone()
        products = connection.execute("SELECT count(*) FROM product").fetchone()
    print(f"  {products[0] if products else 0:,} products, {count[0] if count else 0:,} offers")


def _sample(made: Ground, game: str, count: int, seed: int) -> list[Product]:
    with made.admin() as connection:
        rows: list[Product] = connection.execute(
            "SELECT id, product_name, set_name, coalesce(number, ''), name_key, finish FROM product"
            " WHERE game = %s AND number <> '' AND length(name_key) > 1 ORDER BY id",
            (game,),
        ).fetchall()
    return random.Random(seed).sample(rows, min(count, len(rows)))


def _typo(word: str, letters: int, rng: random.Random) -> str:
    for _ in range(letters):
        at = rng.randrange(len(word))
        kind = rng.randrange(4)
        other = rng.choice("abcdefghijklmnopqrstuvwxyz")
        if kind == 0:
            word = word[:at] + word[at + 1 :]
        elif kind == 1:
            word = word[:at] + other + word[at:]
        elif kind == 2:
            word = word[:at] + other + word[at + 1 :]
        else:
            word = word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
    return word


def _mistyped(name: str, rng: random.Random) -> str | None:
    """Return the name with one or two letters wrong in a word that is long enough for it."""
    words = name.split()
    long = [at for at, word in enumerate(words) if len(word) >= 5 and word.isascii()]
    if not long:
        return None
    at = rng.choice(long)
    words[at] = _typo(words[at], 2 if len(words[at]) >= 8 and rng.random() < 0.4 else 1, rng)
    return " ".join(words)


def _mixed(products: list[Product], rng: random.Random) -> list[Reference]:
    """Return references as buyers write them: whole, in part, by name alone, in other letters."""
    found: list[Reference] = []
    for _, name, set_name, number, _, _ in products:
        kind = rng.randrange(5)
        found.append(
            {"name": name, "set": set_name, "number": number}
            if kind == 0
            else {"name": name, "number": number}
            if kind == 1
            else {"name": name, "set": set_name}
            if kind == 2
            else {"name": name}
            if kind == 3
            else {"name": name.upper().replace("É", "E"), "number": number}
        )
    return found


def _ask(client: Client, game: str, cards: list[Reference]) -> tuple[float, list[dict[str, Any]]]:
    body = json.dumps({"game": game, "cards": cards}).encode()
    began = perf_counter()
    status, _, answer = client.request("POST", PATH, body, Content_Type="application/json")
    took = (perf_counter() - began) * 1000
    assert status == 200, answer[:300]
    return took, json.loads(answer)["results"]


def _verdict(result: dict[str, Any], product_id: int) -> str:
    if result["status"] == "resolved":
        return "right" if result["product_id"] == product_id else "wrong"
    listed = product_id in {one["product_id"] for one in result["candidates"]}
    return "listed" if listed else "truncated" if result["truncated"] else "lost"


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


def _like_scan(made: Ground, products: list[Product]) -> float:
    """Return the milliseconds of a LIKE scan for each of the references."""
    began = perf_counter()
    with made.admin() as connection:
        for _, name, *_ in products:
            connection.execute(
                "SELECT id FROM product WHERE lower(product_name) LIKE '%%' || lower(%s) || '%%'",
                (name,),
            ).fetchall()
    return (perf_counter() - began) * 1000


def _spent(made: Ground, children: list[Child]) -> float:
    running = [child.process.pid for child in children if child.process is not None]
    web = sum(ground.cpu_seconds(psutil.Process(pid)) for pid in running)
    return web + ground.cpu_seconds(made.postmaster())


def _round_trips(
    report: Report,
    made: Ground,
    seller_id: int,
    game: str,
    cards: list[Reference],
) -> None:
    """Count what all references of a request, and one alone, ask of the database."""

    async def asked(database: Database, some: list[Reference]) -> int:
        caller = await made.caller(database, seller_id)
        async with counting(database) as counted, database.tenant(seller_id) as session:
            body = {"game": game, "cards": some}
            await availability.find(session, caller, body, clock.now())
        return counted.round_trips

    async def both(database: Database) -> tuple[int, int]:
        return await asked(database, cards), await asked(database, cards[:1])

    many, one = made.in_database(both)
    report.note(
        f"{len(cards)} references: {many} round trips, with the transaction's own; one: {one}"
    )
    report.figure(f"round trips of {len(cards)} references / of one", many / one)


def _refresh(report: Report, made: Ground, seller_id: int) -> None:
    """Let a shop with 200,000 cards have a sync that changes 50,000 of them."""
    with made.admin() as connection:
        connection.execute(
            """
            INSERT INTO card (seller_id, id, marketplace_id, listing_id, product_id, identity_hash,
                              observed_at, created_at, updated_at, quantity, price, printing,
                              language, product_line, match, product_line_label, set_name,
                              product_name, title, number, rarity, condition, condition_label,
                              photo_url)
            SELECT %s, n, n, n, p.id, n, now(), now(), now(), 1 + n %% 4, (1 + n %% 5000) / 100.0,
                   'Normal', 'English', p.game, 'matched', 'Line', p.set_name, p.product_name, '',
                   coalesce(p.number, ''), '', (ARRAY['NM', 'LP'])[g], 'Near Mint', ''
              FROM (SELECT row_number() OVER () AS n, g, p.* FROM product p
                     CROSS JOIN generate_series(1, 2) AS g LIMIT 200000) AS p
            """,
            (seller_id,),
        )
        connection.execute("VACUUM ANALYZE card")

    async def written(database: Database) -> int:
        async with database.tenant(seller_id) as session:
            return await offers.refresh(session, seller_id)

    made.in_database(written)
    with made.admin() as connection:
        connection.execute(
            "UPDATE card SET price = price + 0.5 WHERE seller_id = %s AND id <= 50000", (seller_id,)
        )
    began = perf_counter()
    changed = made.in_database(written)
    took = perf_counter() - began
    began = perf_counter()
    again = made.in_database(written)
    report.note(f"again without a change: {(perf_counter() - began):.2f} s")
    report.figure("offers refreshed after 50,000 changed rows", took, "s")
    report.figure("of them written", changed, "rows")
    report.figure("written again without a change", again, "rows")


def measure(
    data: Path,
    rows: int,
    products: int,
    sellers: int,
    listed: int,
    rounds: int,
) -> Report:
    report = Report("Discovery")
    rng = random.Random(18)
    with ground.ground(data, 1_000) as made:
        _more_products(made, products)
        _offers(made, sellers, listed)
        seller = made.new_seller()
        with ground.service(made, workers=0) as children:
            used = _spent(made, children)
            client = Client(made.settings.bind, seller.api_key)
            asked = {game: _sample(made, game, 4_000, 7) for game in ("pokemon", "magic")}
            times: list[float] = []
            for turn in range(rounds + 10):
                game = ("pokemon", "magic")[turn % 2]
                took, _ = _ask(client, game, _mixed(rng.sample(asked[game], AT_ONCE), rng))
                if turn >= 10:
                    times.append(took)
            spent = (_spent(made, children) - used) / (rounds + 10) * 1000
            report.note(f"25 references: {spent:.1f} ms of processor time, database included")
            report.figure("25 references: p50", statistics.median(times), "ms")
            report.figure("25 references: p99", _p99(times), "ms")
            naive = _like_scan(made, rng.sample(asked["pokemon"], AT_ONCE))
            report.figure("a LIKE scan / 25 references", naive / statistics.median(times))
            named: list[Reference] = [
                {"name": name, "set": set_name, "number": number}
                for _, name, set_name, number, *_ in asked["magic"][:AT_ONCE]
            ]
            _round_trips(report, made, seller.seller_id, "magic", named)
            _typos(report, client, asked, rounds, rng)
            _truth(report, client, asked)
            client.close()
        _refresh(report, made, seller.seller_id)
    return report


def _typos(
    report: Report,
    client: Client,
    asked: dict[str, list[Product]],
    rounds: int,
    rng: random.Random,
) -> None:
    times: list[float] = []
    verdicts: Counter[str] = Counter()
    for turn in range(rounds):
        game = ("pokemon", "magic")[turn % 2]
        some: list[tuple[int, Reference]] = []
        while len(some) < AT_ONCE:
            id, _, _, number, name_key, _ = rng.choice(asked[game])
            typed = _mistyped(name_key, rng)
            if typed is not None:
                some.append((id, {"name": typed, "number": number}))
        took, results = _ask(client, game, [reference for _, reference in some])
        times.append(took)
        verdicts.update(_verdict(result, id) for result, (id, _) in zip(results, some, strict=True))
    right = (verdicts["right"] + verdicts["listed"]) / sum(verdicts.values()) * 100
    report.note(f"mistyped: {dict(verdicts)}; p50 {statistics.median(times):.1f} ms")
    report.figure("25 mistyped references: p99", _p99(times), "ms")
    report.figure("the right product is listed for a mistyped name", right, "%")


def _truth(report: Report, client: Client, asked: dict[str, list[Product]]) -> None:
    verdicts: Counter[str] = Counter()
    for game, products in asked.items():
        references: list[tuple[int, Reference]] = []
        for id, name, set_name, number, _, _ in products[:1_000]:
            references += [
                (id, {"name": name, "set": set_name, "number": number}),
                (id, {"name": name, "number": number}),
                (id, {"name": name, "set": set_name}),
            ]
        for at in range(0, len(references), AT_ONCE):
            some = references[at : at + AT_ONCE]
            _, results = _ask(client, game, [reference for _, reference in some])
            verdicts.update(
                _verdict(result, id) for result, (id, _) in zip(results, some, strict=True)
            )
    total = sum(verdicts.values())
    report.note(f"generated truth, {total:,} references: {dict(verdicts)}")
    report.figure("references that are resolved wrongly", verdicts["wrong"], "")
    kept = (total - verdicts["lost"] - verdicts["wrong"]) / total * 100
    report.figure("right, listed, or told to be cut", kept, "%")


if __name__ == "__main__":
    ground.main(
        measure, __doc__, products=500_000, sellers=200, listed=2_000_000, rounds=200
    )  # fmt: skip

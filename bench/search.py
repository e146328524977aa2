"""`python bench/search.py [--rounds 5]`: sixty searches over 300,000 active cards among 1,000,000
rows, the first page with its total over HTTP, against the best SQL that we could write for each
by hand on the same tables; how long reading a search takes; and the slowest heartbeat while
somebody asks for the worst that a search can be.

By hand: page and count in one pass, and each by a statement of its own; the faster of the two,
which knows beforehand, counts.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from timeit import repeat
from typing import Any
from urllib.parse import urlencode

import psycopg

import ground
import import_inventory
from cardsync.platform.database.bound_text import named
from cardsync.platform.database.urls import libpq_url
from cardsync.shop.accounts.sellers import CreatedSeller
from cardsync.stock.cards.queries import _COLUMNS, _FROM
from cardsync.stock.search.parser import parse
from ground import Client, Ground, Report

PAGE = 50
SIX_TERMS = "lightning bolt cond:NM|LP price>=5 -is:foil list:binder"

STAMP = "prerelease|staff|winner|finalist|champion|stamped"
_IN_LIST = (
    "c.id IN (SELECT card_id FROM card_list_entry"
    " WHERE seller_id = {s}"
    " AND list_id = (SELECT id FROM card_list WHERE seller_id = {s} AND slug = 'binder'))"
)


def word(text: str) -> str:
    return f"c.search_text LIKE '% {text}%'"


def in_set(text: str) -> str:
    return f"c.search_text LIKE '%\x1e%{text}%\x1d%'"


def rarity(text: str) -> str:
    return f"c.search_text LIKE '%\x1d{text}\x1c%'"


def number(text: str) -> str:
    return f"c.search_text LIKE '%\x1c{text}\x1b%'"


# Searches as a seller types them, each with its condition by hand.
SEARCHES: dict[str, str] = {
    "": "true",
    "bolt": word("bolt"),
    "forest": word("forest"),
    "pikachu": word("pikachu"),
    "the": word("the"),
    "a": word("a"),
    "zzzz": word("zzzz"),
    "lightning bolt": f"{word('lightning')} AND {word('bolt')}",
    "dragon red": f"{word('dragon')} AND {word('red')}",
    "char ex": f"{word('char')} AND {word('ex')}",
    '"of the"': "c.search_text LIKE '%\x1f%of the%\x1e%'",
    "name:saur": "c.search_text LIKE '%\x1f%saur%\x1e%'",
    "urza's": word("urzas"),
    "cond:NM": "c.condition = 'NM'",
    "cond<=LP": "c.condition IN ('NM', 'LP')",
    "cond!=NM": "c.condition <> 'NM'",
    "price>5": "c.price > 5",
    "price>=100": "c.price >= 100",
    "price:1..2": "c.price BETWEEN 1 AND 2",
    "price<0.10": "c.price < 0.10",
    "-price>5": "(c.price > 5) IS NOT TRUE",
    "qty>=4": "c.quantity >= 4",
    "qty:2..3 price>1": "c.quantity BETWEEN 2 AND 3 AND c.price > 1",
    "game:pokemon": "c.product_line = 'pokemon'",
    "game:magic|pokemon_japan": "c.product_line IN ('magic', 'pokemon_japan')",
    "set:legends": in_set("legends"),
    "set:promo cond:NM": f"{in_set('promo')} AND c.condition = 'NM'",
    "r:rare": rarity("rare"),
    "rarity:C price>1": f"{rarity('c')} AND c.price > 1",
    "cn:25": number("25"),
    "cn:1..50 set:base": f"c.number_leading BETWEEN 1 AND 50 AND {in_set('base')}",
    "cn>=300": "c.number_leading >= 300",
    "f:foil": "c.printing = 'Foil'",
    "is:foil price>5": "c.printing LIKE '%oil%' AND c.price > 5",
    "-is:foil cond:NM": "c.printing NOT LIKE '%oil%' AND c.condition = 'NM'",
    "lang:ja": "c.language = 'Japanese'",
    "v:staff": (
        r"c.search_text LIKE '%staff%'"
        r" AND c.search_text ~"
        r" '^[^\x1d]*(\(([^)\x1d\x1e]*[^a-z0-9)\x1d\x1e])?staff([^a-z0-9)\x1d\x1e][^)\x1d\x1e]*)?\)|\[([^]\x1d\x1e]*[^]a-z0-9\x1d\x1e])?staff([^]a-z0-9\x1d\x1e][^]\x1d\x1e]*)?\])'"
    ),
    "is:stamped": (
        r"c.search_text ~ '[(\[]'"
        r" AND c.search_text ~"
        rf" '^[^\x1d]*(\(([^)\x1d\x1e]*[^a-z0-9)\x1d\x1e])?({STAMP})([^a-z0-9)\x1d\x1e][^)\x1d\x1e]*)?\)|\[([^]\x1d\x1e]*[^]a-z0-9\x1d\x1e])?({STAMP})([^]a-z0-9\x1d\x1e][^]\x1d\x1e]*)?\])'"
    ),
    "is:unpriced": "c.price IS NULL",
    "is:underpriced": "c.price < c.target_price",
    "is:overpriced price>1": "c.price > c.target_price AND c.price > 1",
    "change>10 price>1": "(c.target_price - c.price) * 10 > c.price AND c.price > 1",
    "is:review": "(c.match = 'ambiguous' OR c.condition IS NULL)",
    "list:binder": _IN_LIST,
    "list:binder cond:NM price>1": f"{_IN_LIST} AND c.condition = 'NM' AND c.price > 1",
    "-list:binder dragon": f"NOT {_IN_LIST} AND {word('dragon')}",
    "box:3": "c.id IN (SELECT card_id FROM card_location WHERE seller_id = {s} AND box = 3)",
    "loc:3-3": (
        "c.id IN (SELECT card_id FROM card_location"
        " WHERE seller_id = {s} AND box = 3 AND slot = 3)"
    ),
    "is:unshelved price>20": (
        "c.quantity > 0 AND c.price > 20"
        " AND NOT EXISTS (SELECT FROM card_location l WHERE l.seller_id = {s} AND l.card_id = c.id)"
    ),
    "has:location": "c.id IN (SELECT card_id FROM card_location WHERE seller_id = {s})",
    "bolt or shock": f"({word('bolt')} OR {word('shock')})",
    "elf or goblin or zombie cond:NM": (
        f"({word('elf')} OR {word('goblin')} OR {word('zombie')} AND c.condition = 'NM')"
    ),
    "(elf or goblin) price<1": f"({word('elf')} OR {word('goblin')}) AND c.price < 1",
    "-(cond:NM or cond:LP)": "(c.condition IN ('NM', 'LP')) IS NOT TRUE",
    "dragon -red cond:NM": f"{word('dragon')} AND NOT {word('red')} AND c.condition = 'NM'",
    "game:magic r:rare cond:NM price>1 -is:foil": (
        f"c.product_line = 'magic' AND {rarity('rare')} AND c.condition = 'NM' AND c.price > 1"
        " AND c.printing NOT LIKE '%oil%'"
    ),
    "game:pokemon pikachu cond:NM|LP price:1..50 qty>=1 lang:en": (
        f"c.product_line = 'pokemon' AND {word('pikachu')} AND c.condition IN ('NM', 'LP')"
        " AND c.price BETWEEN 1 AND 50 AND c.quantity >= 1 AND c.language = 'English'"
    ),
    "(dragon or angel) (cond:NM or is:foil) price>=2 -list:binder": (
        f"({word('dragon')} OR {word('angel')})"
        f" AND (c.condition = 'NM' OR c.printing LIKE '%oil%') AND c.price >= 2 AND NOT {_IN_LIST}"
    ),
    "market>10 price<10": "c.market > 10 AND c.price < 10",
    SIX_TERMS: (
        f"{word('lightning')} AND {word('bolt')} AND c.condition IN ('NM', 'LP') AND c.price >= 5"
        f" AND c.printing NOT LIKE '%oil%' AND {_IN_LIST}"
    ),
}  # fmt: skip


def set_the_scene(made: Ground, seller: int, others: list[int]) -> None:
    """The imported cards again: 100,000 of them gone, the rest in other shops, among the seller's
    own.
    """
    with made.admin() as connection:
        columns = [
            row[0]
            for row in connection.execute(
                "SELECT attname FROM pg_attribute"
                " WHERE attrelid = 'card'::regclass AND attnum > 0 AND NOT attisdropped"
            )
        ]
        # Unsold cards, a fifth of them gone by their quantity, are made to be there.
        connection.execute(
            "UPDATE card SET gone = false, quantity = greatest(quantity, 1)"
            f" WHERE seller_id = {seller} AND gone"
        )
        for shift, (owner, gone, most) in enumerate(
            [(seller, True, 100_000), (others[0], False, 300_000), (others[1], False, 300_000)], 1
        ):
            changed = {
                "seller_id": f"{owner}",
                "id": f"id + {shift * 10**9}",
                "marketplace_id": f"marketplace_id + {shift * 10**11}",
                "gone": f"{gone}",
                "quantity": "0" if gone else "quantity",
            }
            values = ", ".join(changed.get(name, f"c.{name}") for name in columns)
            source = (
                f"SELECT * FROM card WHERE seller_id = {seller} AND NOT gone ORDER BY id"
                f" LIMIT {most}"
            )
            connection.execute(
                f"INSERT INTO card ({', '.join(columns)}) SELECT {values} FROM ({source}) AS c"
            )
        connection.execute(
            "INSERT INTO card_list (seller_id, name, name_key, slug, position)"
            f" VALUES ({seller}, 'Binder', 'binder', 'binder', 1)"
        )
        connection.execute(
            "INSERT INTO card_list_entry (seller_id, list_id, card_id)"
            f" SELECT {seller}, l.id, c.id FROM card_list l,"
            f" LATERAL (SELECT id FROM card WHERE seller_id = {seller} ORDER BY md5(id::text)"
            f" LIMIT 1000) c WHERE l.seller_id = {seller}"
        )
        connection.execute(
            "INSERT INTO card_location (seller_id, card_id, box, slot, quantity)"
            f" SELECT {seller}, id, 1 + id % 40, 1 + id % 100, 1"
            f" FROM (SELECT id FROM card WHERE seller_id = {seller} AND NOT gone"
            " ORDER BY md5(id::text) LIMIT 60000) c"
        )
        connection.execute("VACUUM ANALYZE card, card_list, card_list_entry, card_location")
    made.settle()


class Hand:
    """SQL by hand on a connection as the application makes it, in the seller's scope."""

    def __init__(self, connection: psycopg.Connection[Any], seller: int) -> None:
        self.connection, self.seller = connection, seller
        connection.execute(f"SET app.seller_id = '{seller}'")

    def rows(self, query: str) -> list[Any]:
        return self.connection.execute(query).fetchall()

    def _where(self, text: str) -> str:
        return (
            f"c.seller_id = {self.seller} AND NOT c.gone"
            f" AND {SEARCHES[text].replace('{s}', str(self.seller))}"
        )

    def _shown(self, ids: list[int]) -> None:
        query = (
            f"SELECT {_COLUMNS} FROM {_FROM}"
            " WHERE c.seller_id = :seller"
            f" AND c.id = ANY (ARRAY[{','.join(map(str, ids))}]::bigint[])"
        )
        self.connection.execute(named(query), {"seller": self.seller})

    def apart(self, text: str) -> int:
        where = self._where(text)
        ids = [
            id
            for (id,) in self.rows(
                f"SELECT id FROM card c WHERE {where} ORDER BY c.search_text, c.id LIMIT {PAGE}"
            )
        ]
        [(total,)] = self.rows(f"SELECT count(*) FROM card c WHERE {where}")
        self._shown(ids)
        return int(total)

    def together(self, text: str) -> int:
        query = (
            "WITH c AS MATERIALIZED (SELECT c.id, c.search_text FROM card c"
            f" WHERE {self._where(text)})"
        )
        query += (
            " SELECT (SELECT count(*) FROM c),"
            f" ARRAY(SELECT c.id FROM c ORDER BY c.search_text, c.id LIMIT {PAGE})"
        )
        [(total, ids)] = self.rows(query)
        self._shown(ids)
        return int(total)


def ask(client: Client, text: str) -> tuple[float, dict[str, Any]]:
    started = perf_counter()
    status, _, body = client.request("GET", f"/api/cards?{urlencode({'search': text})}")
    took = perf_counter() - started
    page = json.loads(body)
    assert status == 200, body[:300]
    assert page["query_errors"] == [], page
    return took, page


def searches(report: Report, client: Client, hand: Hand, rounds: int) -> None:
    ratios, slowest = [], 0.0
    for text in SEARCHES:
        times: dict[str, list[float]] = {"ours": [], "apart": [], "together": []}
        for _ in range(rounds + 1):
            took, page = ask(client, text)
            times["ours"].append(took)
            for name, way in (("apart", hand.apart), ("together", hand.together)):
                started = perf_counter()
                total = way(text)
                times[name].append(perf_counter() - started)
                assert total == page["total"], (text, name, total, page["total"])
        ours, apart, together = (statistics.median(values[1:]) for values in times.values())
        ratios.append(ours / min(apart, together))
        slowest = max(slowest, ours)
        report.note(
            f"{page['total']:>7,} found in {ours * 1000:6.1f} ms;"
            f" by hand {apart * 1000:6.1f} and {together * 1000:6.1f} ms;"
            f" {ratios[-1]:4.2f} x  {text or '(empty)'}"
        )
    ratios.sort()
    report.figure(f"{len(ratios)} searches / best SQL, p50", statistics.median(ratios))
    report.figure(f"{len(ratios)} searches / best SQL, p99", ratios[-1])
    report.figure("the slowest of them", slowest * 1000, "ms")


# The searches that cost most to read, compile or answer. A refusal is an answer too.
HOSTILE = [
    " or ".join(f"{chr(97 + n % 26)}{n}" for n in range(200)),
    "-(" * 20 + "a or b" + ")" * 20,
    "has:rule",
    "rule:999999999",
    " or ".join(["has:rule"] * 100),
    "v:" + "|".join(f"staff {n}" for n in range(150)).replace(" ", "-"),
    "list:" + "x" * 1_900,
]
RULES_MADE = 40


def hostile(report: Report, made: Ground, bind: str, seller: CreatedSeller) -> None:
    """Forty rules of two hundred words each; heartbeats while one connection asks for the worst."""
    words = " or ".join(f"w{number}" for number in range(200))
    with made.admin() as connection:
        connection.execute(
            "INSERT INTO pricing_rule (seller_id, name, priority, state, query, settings)"
            " SELECT %s, 'Rule ' || n, n, 'published', %s, '{}' FROM generate_series(1, %s) AS n",
            (seller.seller_id, words, RULES_MADE),
        )
    ending = Event()

    def asking() -> None:
        client = Client(bind, seller.api_key)
        while not ending.is_set():
            for text in HOSTILE:
                status, _, body = client.request("GET", f"/api/cards?{urlencode({'search': text})}")
                assert status == 200, body[:300]

    asker = Thread(target=asking)
    asker.start()
    try:
        beats = [_beat(Client(bind, seller.api_key)) for _ in range(500)]
    finally:
        ending.set()
        asker.join()
    report.figure("the slowest heartbeat beside hostile searches", max(beats) * 1000, "ms")


def _beat(client: Client) -> float:
    started = perf_counter()
    status, _, body = client.request(
        "POST", "/api/v1/heartbeat", b'{"version":"1.2.3"}', Content_Type="application/json"
    )
    client.close()
    assert status == 200, body[:300]
    return perf_counter() - started


def filled_lists(made: Ground, seller: int) -> None:
    """100 lists in all, every one of them full."""
    with made.admin() as connection:
        connection.execute(
            "INSERT INTO card_list (seller_id, name, name_key, slug, position)"
            f" SELECT {seller}, 'L' || n, 'l' || n, 'l' || n, n"
            " FROM generate_series(2, 100) AS n"
        )
        connection.execute(
            "INSERT INTO card_list_entry (seller_id, list_id, card_id)"
            f" SELECT {seller}, l.id, c.id FROM card_list l,"
            f" LATERAL (SELECT id FROM card WHERE seller_id = {seller}"
            " ORDER BY md5((id + l.id)::text) LIMIT 1000) c"
            f" WHERE l.seller_id = {seller} AND l.position BETWEEN 3 AND 100"
        )
        connection.execute("VACUUM ANALYZE card_list, card_list_entry")


def lists(report: Report, made: Ground, key: str, hand: Hand, rounds: int) -> None:
    filled_lists(made, hand.seller)
    client = Client(made.settings.bind, key)
    s = hand.seller
    [(list_id, card_id)] = hand.rows(
        f"SELECT (SELECT id FROM card_list WHERE seller_id = {s} AND slug = 'l2'),"
        f" (SELECT max(card_id) FROM card_list_entry WHERE seller_id = {s})"
    )
    bare = (
        f"SELECT e.list_id, count(*), count(*) FILTER (WHERE c.gone), bool_or(c.id = {card_id})"
        " FROM card_list_entry e"
        f" JOIN card c ON c.seller_id = {s} AND c.id = e.card_id WHERE e.seller_id = {s} GROUP BY 1"
    )
    insert = (
        f"INSERT INTO card_list_entry (seller_id, list_id, card_id) SELECT {s}, {list_id}, id"
        " FROM card c"
        f" WHERE c.seller_id = {s} AND NOT c.gone AND {word('forest')} LIMIT 1000"
    )
    empty = f"DELETE FROM card_list_entry WHERE seller_id = {s} AND list_id = {list_id}"
    times: dict[str, list[float]] = {name: [] for name in ("page", "aggregate", "add", "insert")}
    for _ in range(rounds + 1):
        times["page"].append(
            ground.seconds(lambda: client.request("GET", f"/api/lists?card_id={card_id}"))
        )
        times["aggregate"].append(ground.seconds(lambda: hand.rows(bare)))
        times["insert"].append(ground.seconds(lambda: hand.connection.execute(insert)))
        hand.connection.execute(empty)
        body = b'{"search": "forest"}'
        started = perf_counter()
        status, _, told = client.request(
            "POST", f"/api/lists/{list_id}/cards", body, Content_Type="application/json"
        )
        times["add"].append(perf_counter() - started)
        assert (status, json.loads(told)["added"]) == (200, 1000), told
        hand.connection.execute(empty)
    middle = {name: statistics.median(values[1:]) for name, values in times.items()}
    report.note(", ".join(f"{name} {value * 1000:.1f} ms" for name, value in middle.items()))
    report.figure("100 full lists / bare aggregate", middle["page"] / middle["aggregate"])
    report.figure("add 1,000 cards by a search / INSERT … SELECT", middle["add"] / middle["insert"])


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Searching cards")
    reading = min(repeat(lambda: parse(SIX_TERMS), number=1_000, repeat=9)) / 1_000
    report.figure("reading a search of six terms", reading * 1e6, "µs")
    with ground.ground(data, rows) as made:
        seller, *others = (made.new_seller() for _ in range(3))
        with ground.service(made, workers=1):
            import_inventory.upload(made, seller, made.inventory.read_bytes())
        set_the_scene(made, seller.seller_id, [other.seller_id for other in others])
        with (
            ground.service(made, workers=0),
            psycopg.connect(libpq_url(made.url), autocommit=True) as connection,
        ):
            client, hand = (
                Client(made.settings.bind, seller.api_key),
                Hand(connection, seller.seller_id),
            )
            searches(report, client, hand, rounds)
            hostile(report, made, made.settings.bind, seller)
            lists(report, made, seller.api_key, hand, rounds)
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)

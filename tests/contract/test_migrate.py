"""Migrations as a start sees them: the newest is known by its name, and a database that cannot be
used is refused in a sentence.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine

from cardsync.operations.processes import supervisor
from cardsync.platform.database.migrate import check, head_revision, migrate
from cardsync.platform.database.urls import engine_url, libpq_url
from cardsync.platform.settings import Settings


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        yield connection


def test_the_newest_migrations_name_is_alembics_head() -> None:
    scripts = ScriptDirectory(str(Path(__file__).parents[2] / "migrations"))
    assert scripts.get_heads() == [head_revision()]
    assert all(
        Path(script.path).name.startswith(f"{script.revision}_")
        for script in scripts.walk_revisions()
    )


@pytest.fixture
def at(owner: psycopg.Connection) -> Iterator[Callable[[str], None]]:
    """Moves the database to a revision, and back in the end."""
    yield lambda revision: owner.execute("UPDATE alembic_version SET version_num = %s", [revision])
    owner.execute("UPDATE alembic_version SET version_num = %s", [head_revision()])


def test_a_database_of_a_newer_program_is_left_alone(
    owner_url: str, at: Callable[[str], None]
) -> None:
    at("9999")
    with pytest.raises(
        RuntimeError, match=r"the database is at 9999, .* it takes a newer cardsync"
    ):
        migrate(owner_url)


def test_a_worker_of_its_own_takes_a_database_of_this_program(
    owner_url: str, at: Callable[[str], None]
) -> None:
    check(owner_url)
    at("0001")
    with pytest.raises(
        RuntimeError, match=r"the database is at 0001, this program needs .* see `cardsync migrate`"
    ):
        check(owner_url)


def test_a_start_without_the_owners_address_takes_a_database_of_this_program(
    settings: Settings, at: Callable[[str], None]
) -> None:
    given = urlsplit(settings.database_url or "")
    options = "options=-c%20role%3Dcardsync_app"
    url = urlunsplit(given._replace(query=f"{given.query}&{options}".strip("&")))
    alone = settings.model_copy(update={"database_url": url, "migration_database_url": None})
    with supervisor.database(alone, print) as ready:
        assert ready.database_url == url
    at("0001")
    with (
        pytest.raises(RuntimeError, match="cannot be brought to"),
        supervisor.database(alone, print),
    ):
        pass


@pytest.mark.parametrize("look", [migrate, check])
def test_a_database_that_is_away_is_told_in_a_line(look: Callable[[str], None]) -> None:
    with pytest.raises(
        RuntimeError, match="the database cannot be reached, see CARDSYNC_DATABASE_URL"
    ) as told:
        look("postgresql://somebody:secret@127.0.0.1:1/nothing")
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.day
def test_a_database_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.platform.database.urls.CONNECT_SECONDS", 2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(RuntimeError, match="cannot be reached"),
    ):
        migrate(f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing")


@pytest.mark.day
def test_how_long_to_wait_for_it_is_the_operators_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardsync.platform.database.urls.CONNECT_SECONDS", 3600)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(RuntimeError, match="cannot be reached"),
    ):
        migrate(
            f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing?connect_timeout=2"
        )


def test_a_revision_of_nobody_is_told_in_a_line(owner_url: str, at: Callable[[str], None]) -> None:
    at("0005x")
    with pytest.raises(RuntimeError, match=r"cannot be brought to .*0005x") as told:
        migrate(owner_url)
    assert "\n" not in str(told.value)


def test_a_table_that_may_not_be_read_is_told_in_a_line(
    owner_url: str, owner: psycopg.Connection
) -> None:
    owner.execute("REVOKE SELECT ON alembic_version FROM cardsync_app")
    try:
        with pytest.raises(RuntimeError, match="the database cannot be used: permission denied"):
            check(owner_url)
    finally:
        owner.execute("GRANT SELECT ON alembic_version TO cardsync_app")


SHOP_BEFORE = """
    INSERT INTO orders (seller_id, order_number, status, items_total, items_quantity, total_amt,
                        refund_type, refund_amt)
    VALUES (1, 'PULLED', 'Ready to Ship', 1, 3, 5, NULL, NULL),
           (1, 'LOST', 'Refunded', 0, 0, 7.50, 'full', NULL),
           (1, 'PART', 'Refunded', 0, 0, 7.50, 'partial', 1.25),
           (1, 'NONE', 'Completed - Paid', 0, 0, 7.50, NULL, NULL);
    INSERT INTO order_item (seller_id, order_id, product_name, quantity)
    SELECT 1, id, 'Ash', 3 FROM orders WHERE order_number = 'PULLED';
    INSERT INTO pull_session (seller_id, opened_at) VALUES (1, now());
    INSERT INTO pull_session_order (seller_id, session_id, order_id)
    SELECT 1, s.id, o.id FROM pull_session s, orders o WHERE o.order_number = 'PULLED';
"""
KEPT = """
    SELECT status, shipping_type, item_count, changed, items_hash IS NOT NULL, product_name,
        quantity
      FROM pull_session_order JOIN pull_session_item USING (seller_id, session_id, order_id)
"""


@contextmanager
def migrated_from(
    owner_url: str, owner: psycopg.Connection, revision: str, rows: str
) -> Iterator[psycopg.Connection]:
    """A database that had these rows at a revision, and was migrated to the newest since."""
    name = f"{urlsplit(owner_url).path[1:]}_before"
    owner.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    plain = libpq_url(url, role=None)
    try:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
        with create_engine(engine_url(plain), poolclass=NullPool).connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.exec_driver_sql(rows)
            connection.commit()
        migrate(url)
        with psycopg.connect(plain) as migrated:
            yield migrated
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.day
def test_pull_sessions_and_lost_refunds_come_along(
    owner_url: str, owner: psycopg.Connection
) -> None:
    """Sessions get what their orders are at the migration, refunds without a total their amount."""
    with migrated_from(owner_url, owner, "0013", SHOP_BEFORE) as connection:
        kept = [("Ready to Ship", "pwe", 3, [], True, "Ash", 3)]
        assert connection.execute(KEPT).fetchall() == kept
        refunds = "SELECT order_number, refund_amt::text, refund_total_given::text FROM orders"
        assert set(connection.execute(refunds)) == {
            ("LOST", "7.50", None),
            ("NONE", None, None),
            ("PART", "1.25", "1.25"),
            ("PULLED", None, None),
        }
        tally = "SELECT sum(orders) FROM order_tally WHERE refunded AND period = 'ever'"
        assert connection.execute(tally).fetchone() == (2,)


# Every memory of single prices in each of its states: pins with and without an end, reviews with and
# without a price that was accepted before, the way back from a sale, a confirmed leap, a cap, two
# sales of one card, both parts of a hold-out.
DECIDED_BEFORE = """
    SET timezone = 'UTC';
    INSERT INTO pinned_price (seller_id, marketplace_id, price, until, created_at)
    VALUES (1, 1, 5, NULL, '2026-11-01'), (1, 2, 6.5, '2026-12-01', '2026-11-02');
    INSERT INTO price_review (seller_id, marketplace_id, state, reason, decided_at, decided_by,
                              accepted_price, accepted_at, proposed_price, regular_price, result,
                              worth, revision, created_at, expires_at)
    SELECT 1, r.*, 20, 20, 20, 7, '2026-11-03', '2026-11-03', '2026-12-03'
      FROM (VALUES
            (3, 'pending', 'rise', CAST(NULL AS timestamptz), NULL, CAST(NULL AS numeric),
             CAST(NULL AS timestamptz)),
            (4, 'pending', 'rise', NULL, NULL, 18, '2026-11-04'),
            (5, 'accepted', 'rise', '2026-11-05', 'member 7', 20, '2026-11-05'),
            (6, 'dismissed', 'drop', '2026-11-06', 'member 7', 17, '2026-11-04'),
            (7, 'dismissed', 'first_price', '2026-11-06', 'member 7', NULL, NULL),
            (8, 'accepted', 'sale', '2026-11-07', 'pricing', 19, '2026-11-07'),
            (9, 'accepted', 'rise', '2026-11-05', 'member 7', NULL, NULL)) AS r;
    INSERT INTO confirmed_price VALUES (1, 10, 30, '2026-11-08');
    INSERT INTO held_price VALUES (1, 11), (2, 11);
    INSERT INTO sale_target VALUES (1, 12, 70), (1, 12, 71);
    INSERT INTO price_holdout (seller_id, marketplace_id, part, rule_id, held, price, asked, since)
    VALUES (1, 13, 689, 80, true, 3, 4, '2026-11-09'), (1, 14, 689, 80, false, 3, 4, '2026-11-09');
"""
DECIDED = """
    SELECT kind, marketplace_id, source_id, part, price::float, asked::float,
           CASE WHEN kind NOT IN ('cap', 'sale') THEN to_char(since, 'MM-DD') END,
           to_char(until, 'MM-DD'), decided_by
      FROM price_decision WHERE seller_id = 1
"""


@pytest.mark.day
def test_every_decision_about_a_price_comes_along(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0062", DECIDED_BEFORE) as connection:
        connection.execute("SET timezone = 'UTC'")
        assert set(connection.execute(DECIDED)) == {
            ("pin", 1, 0, 0, 5.0, None, "11-01", None, None),
            ("pin", 2, 0, 0, 6.5, None, "11-02", "12-01", None),
            ("accepted", 4, 0, 0, 18.0, None, "11-04", "12-04", None),
            ("accepted", 5, 0, 0, 20.0, None, "11-05", "12-05", "member 7"),
            ("accepted", 6, 0, 0, 17.0, None, "11-04", "12-04", None),
            ("accepted", 8, 0, 0, 19.0, None, "11-07", "12-07", "pricing"),
            ("confirmed", 10, 0, 0, 30.0, None, "11-08", "12-08", None),
            ("cap", 11, 0, 0, None, None, None, None, None),
            ("sale", 12, 70, 0, None, None, None, None, None),
            ("sale", 12, 71, 0, None, None, None, None, None),
            ("held_out", 13, 80, 689, 3.0, 4.0, "11-09", None, None),
            ("twin", 14, 80, 689, 3.0, 4.0, "11-09", None, None),
        }
        other = "SELECT kind, marketplace_id FROM price_decision WHERE seller_id = 2"
        assert connection.execute(other).fetchall() == [("cap", 11)]


SALES_BEFORE = """
    INSERT INTO orders (seller_id, order_number, status, order_date, total_amt, items_total,
                        items_quantity)
    VALUES (1, 'A', 'Completed - Paid', '2026-07-01', 5, 0, 0),
           (1, 'B', 'Completed - Paid', '2026-07-02', 7, 0, 0);
    INSERT INTO sales_kept (seller_id, ordered, zone, kept_at)
    VALUES (1, '2026-07-01', 'UTC', now()), (1, '0001-01-01', 'UTC', now());
    INSERT INTO sales_sum (seller_id, ordered, day, orders, gross, refunded, refunds)
    VALUES (1, '2026-07-01', '2026-06-30', 1, 5, 0, 0), (1, '2026-07-01', '2026-07-01', 2, 6, 0, 0);
    INSERT INTO sales_day (seller_id, day, orders, gross, seen_at)
    VALUES (1, '2026-07-01', 3, 11, now()), (1, '2026-07-02', 1, 7, now()),
           (1, '2026-07-03', 0, 0, now());
"""


@pytest.mark.day
def test_days_that_only_the_former_sums_had_are_counted_anew(
    owner_url: str, owner: psycopg.Connection
) -> None:
    name = f"{urlsplit(owner_url).path[1:]}_sales"
    owner.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    plain = libpq_url(url, role=None)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))

    def moved(to: str, statement: str = "SELECT 1", *, back: bool = False) -> None:
        with create_engine(engine_url(plain), poolclass=NullPool).begin() as connection:
            config.attributes["connection"] = connection
            (command.downgrade if back else command.upgrade)(config, to)
            connection.exec_driver_sql(statement)

    try:
        moved("0064", SALES_BEFORE)
        moved("0065")
        with psycopg.connect(plain) as connection:
            stale = connection.execute("SELECT seller_id, ordered::text FROM sales_stale")
            assert stale.fetchall() == [(1, "2026-07-02")]
            due = connection.execute("SELECT seller_id, stream, attempts FROM work_due")
            assert due.fetchall() == [(1, "sales_sums", 0)]
        moved("0064", back=True)
        with psycopg.connect(plain) as connection:
            days = connection.execute("SELECT day::text, orders, gross::text FROM sales_day")
            assert days.fetchall() == [("2026-07-01", 3, "11.0000")]
            assert connection.execute("SELECT FROM work_due").fetchall() == []
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.day
def test_the_profit_of_kept_days_is_counted_after_the_upgrade(
    owner_url: str, owner: psycopg.Connection
) -> None:
    name = f"{urlsplit(owner_url).path[1:]}_profit"
    owner.execute(f"CREATE DATABASE {name}")
    url = urlunsplit(urlsplit(owner_url)._replace(path=f"/{name}"))
    plain = libpq_url(url, role=None)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
    kept = """
        INSERT INTO sales_kept (seller_id, ordered, zone, kept_at)
        VALUES (1, '2026-07-01', 'UTC', now()), (2, '2026-07-02', 'UTC', now())
    """
    try:
        for to, statement in (("0076", kept), ("0077", "SELECT 1")):
            with create_engine(engine_url(plain), poolclass=NullPool).begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, to)
                connection.exec_driver_sql(statement)
        with psycopg.connect(plain) as connection:
            stale = "SELECT seller_id, ordered::text FROM sales_stale ORDER BY 1"
            assert connection.execute(stale).fetchall() == [(1, "2026-07-01"), (2, "2026-07-02")]
            due = "SELECT seller_id, stream FROM work_due ORDER BY 1"
            assert connection.execute(due).fetchall() == [(1, "sales_sums"), (2, "sales_sums")]
    finally:
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


# What waits for a person's word in each of its states, and a recommendation's events.
WAITED_BEFORE = """
    SET timezone = 'UTC';
    INSERT INTO price_review (seller_id, marketplace_id, state, reason, rule_id, current_price,
                              proposed_price, regular_price, result, worth, revision, created_at,
                              expires_at, decided_at, decided_by)
    VALUES
        (1, 3, 'pending', 'rise', 80, 10, 20, 21.5, 25, 7, '2026-11-03 01:02:03.000004',
         '2026-11-02', '2026-12-03', NULL, NULL),
        (1, 4, 'accepted', 'first_price', NULL, NULL, 20, 20, 20, 0, '2026-11-03', '2026-11-02',
         '2026-12-03', '2026-11-04', 'member 7'),
        (1, -5, 'dismissed', 'drop', 80, 10, 5, 5, 5, 0, '2026-11-03', '2026-11-02', '2026-12-03',
         '2026-11-05', 'member 7');
    INSERT INTO recommendation (seller_id, slot, family, kind, state, card_id, current_price,
                                proposed_price, expected_value, worth, confidence, evidence,
                                evidence_key, revision, created_at, expires_at, settled_at,
                                settled_by)
    SELECT 1, 'price:' || place, 'price', 'depth_raise', state, place, 10, 12, 2, 20000, 'low',
           '{"reason": "Two sold."}', 'x', '2026-11-03', '2026-11-02', '2026-12-03', '2026-11-06',
           'member 7'
      FROM unnest(ARRAY['pending', 'snoozed', 'dismissed', 'accepted', 'auto_applied', 'expired'])
           WITH ORDINALITY AS s (state, place);
    INSERT INTO recommendation_event (seller_id, recommendation_id, revision, kind, at, actor)
    SELECT seller_id, id, revision, 'shown', revision, 'member 7' FROM recommendation;
"""
REVIEWS = """
    SELECT marketplace_id, slot, state, kind, rule_id, current_price::float, proposed_price::float,
           evidence, worth, to_char(revision, 'DD HH24:MI:SS.US'), to_char(created_at, 'DD'),
           to_char(expires_at, 'MM'), to_char(settled_at, 'DD'), settled_by
      FROM proposal WHERE family = 'review'
"""


@pytest.mark.day
def test_whatever_waits_for_a_persons_word_comes_along(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0063", WAITED_BEFORE) as connection:
        connection.execute("SET timezone = 'UTC'")
        start = "03 00:00:00.000000"
        assert set(map(repr, connection.execute(REVIEWS))) == {
            repr(row)
            for row in (
                (3, "review:3", "pending", "rise", 80, 10.0, 20.0,
                 {"result": 250_000, "regular_price": 215_000}, 7, "03 01:02:03.000004", "02", "12",
                 None, None),
                (4, "review:4", "accepted", "first_price", None, None, 20.0,
                 {"result": 200_000, "regular_price": 200_000}, 0, start, "02", "12", "04",
                 "member 7"),
                (-5, "review:-5", "dismissed", "drop", 80, 10.0, 5.0,
                 {"result": 50_000, "regular_price": 50_000}, 0, start, "02", "12", "05",
                 "member 7"),
            )
        }  # fmt: skip
        recommended = """
            SELECT slot, state, card_id, expected_value::text, evidence_key, e.kind
              FROM proposal p JOIN recommendation_event e
                ON e.seller_id = p.seller_id AND e.recommendation_id = p.id
        """
        states = ("pending", "snoozed", "dismissed", "accepted", "auto_applied", "expired")
        assert set(connection.execute(recommended)) == {
            (f"price:{place}", state, place, "2.0000", "x", "shown")
            for place, state in enumerate(states, 1)
        }


# Provisional products of both forms: the same card in two languages and in one, a card that a catalog
# has taken over in English, one of the line that is in one language, and what names them.
SPOKEN_BEFORE = """
    INSERT INTO product (id, game, set_name, product_name, number, finish, language, set_key,
                         name_key, variant_key, number_key, finish_key, language_key, provisional,
                         identity)
    OVERRIDING SYSTEM VALUE
    SELECT id, game, 'Set', name, '7', 'Normal', language, 'set', lower(name), '', '7', 'normal',
           code, true,
           md5(concat_ws(chr(31), 'row', game, 'set', lower(name), '', '', '7', '', 'normal', code))
      FROM (VALUES (1, 'magic', 'Bolt', 'English', 'en'), (2, 'magic', 'Bolt', 'German', 'de'),
                   (3, 'magic', 'Bolt', '', ''), (4, 'magic', 'Shock', 'Thai', 'th'),
                   (5, 'magic', 'Shock', 'German', 'de'), (6, 'magic', 'Opt', 'German', 'de'),
                   (7, 'pokemon_japan', 'Opt', 'Korean', 'ko'), (8, 'magic', 'Duress', 'English', 'en'),
                   (9, 'magic', 'Duress', 'German', 'de'))
           AS p (id, game, name, language, code);
    INSERT INTO product (id, game, set_name, product_name, language, identity)
    OVERRIDING SYSTEM VALUE VALUES (10, 'magic', 'Set', 'Duress', 'en', 'catalog');
    UPDATE product SET adopted_by = 10 WHERE id = 8;
    UPDATE product SET language_key = NULL WHERE id = 3;
    INSERT INTO seller (id, name, email) OVERRIDING SYSTEM VALUE
    VALUES (1, 'A', 'a@x'), (2, 'B', 'b@x');
    INSERT INTO card (seller_id, id, marketplace_id, listing_id, product_id, identity_hash,
                      observed_at, created_at, updated_at, quantity, condition, printing, language,
                      product_line, match, product_line_label, set_name, product_name, title, number,
                      rarity, condition_label, photo_url)
    SELECT s.id, 1000 + p.id, 1000 + p.id, 1000 + p.id, p.id, 77, now(), now(), now(), 1, 'NM',
           'Normal', p.language, p.game, 'provisional', '', 'Set', p.product_name, '', '7', '', '', ''
      FROM product p, seller s WHERE p.id < 10;
    UPDATE card SET match = 'matched' WHERE seller_id = 2 AND id = 1002;
    INSERT INTO settled_match (seller_id, card_id, product_id, was_product_id, was_match, settled_by)
    VALUES (2, 1002, 10, 2, 'provisional', 'member 1');
    INSERT INTO network_offer (product_id, seller_id, condition, quantity)
    VALUES (1, 1, 'NM', 1), (2, 1, 'NM', 1);
    INSERT INTO network_miss (product_id, caller, asked_on)
    VALUES (1, 'a', '2026-11-01'), (2, 'a', '2026-11-02'), (2, 'b', '2026-11-02');
"""
SPOKEN = """
    SELECT id, language, coalesce(language_key, ''), adopted_by,
           identity = md5(concat_ws(chr(31), 'row', game, 'set', name_key, '', '', '7', '', 'normal',
                                    'en'))
      FROM product WHERE id < 10 ORDER BY id
"""


@pytest.mark.day
def test_a_card_in_several_languages_becomes_one_product(
    owner_url: str, owner: psycopg.Connection
) -> None:
    """Each card keeps its row, the decisions that name it by its SKU, and its match; a run that was
    killed behind its last row goes over all of it again and changes nothing.
    """
    with migrated_from(owner_url, owner, "0093", SPOKEN_BEFORE) as connection:

        def stands() -> Any:
            connection.commit()
            cards = "SELECT seller_id, id, product_id, match, identity_hash FROM card ORDER BY 1, 2"
            return (
                connection.execute(SPOKEN).fetchall(),
                connection.execute(cards).fetchall(),
                connection.execute("SELECT was_product_id FROM settled_match").fetchall(),
                connection.execute("SELECT product_id FROM network_offer").fetchall(),
                connection.execute(
                    "SELECT product_id, caller FROM network_miss ORDER BY 2"
                ).fetchall(),
            )

        products, cards, was, offers, misses = stands()
        assert products == [
            (1, "English", "en", None, True),
            (2, "German", "de", 1, False),
            (3, "", "", 1, False),
            (4, "English", "en", None, True),
            (5, "German", "de", 4, False),
            (6, "English", "en", None, True),
            (7, "Korean", "ko", None, False),
            (8, "English", "en", 10, True),
            (9, "German", "de", 10, False),
        ]
        provisional = [
            (1001, 1, "provisional", 77),
            (1002, 1, "provisional", 0),
            (1003, 1, "provisional", 0),
            (1004, 4, "provisional", 0),
            (1005, 4, "provisional", 0),
            (1006, 6, "provisional", 0),
            (1007, 7, "provisional", 77),
            (1008, 8, "provisional", 77),
            # A catalog's product takes the card over with the next upload.
            (1009, 9, "provisional", 0),
        ]
        settled = (1002, 2, "matched", 77)
        assert cards == [
            *((1, *card) for card in provisional),
            *((2, *(settled if card[0] == 1002 else card)) for card in provisional),
        ]
        assert (was, offers, misses) == ([(1,)], [(1,)], [(1, b"a"), (1, b"b")])
        before = stands()
        connection.commit()
        plain = libpq_url(connection.info.dsn, role=None)
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
        with create_engine(engine_url(plain), poolclass=NullPool).connect() as back:
            config.attributes["connection"] = back
            command.downgrade(config, "0093")
        migrate(connection.info.dsn)
        assert stands() == before


REFUNDED_BEFORE = """
    INSERT INTO seller (id, name, email) OVERRIDING SYSTEM VALUE
    VALUES (1, 'A', 'a@x'), (2, 'B', 'b@x');
    INSERT INTO orders (seller_id, order_number, status, items_total, items_quantity, total_amt,
                        refund_type, refund_amt)
    SELECT s.id, f.word, 'Refunded', 0, 0, 1, f.word, 1
      FROM seller s, (VALUES (' Full '), ('PARTIAL'), ('full'), ('store credit')) AS f (word)
"""


@pytest.mark.day
def test_refunds_of_before_are_full_partial_or_of_no_type(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0094", REFUNDED_BEFORE) as connection:
        said = connection.execute("SELECT seller_id, order_number, refund_type FROM orders")
        types = {" Full ": "full", "PARTIAL": "partial", "full": "full", "store credit": None}
        assert sorted(said, key=repr) == sorted(
            ((seller_id, *one) for seller_id in (1, 2) for one in types.items()), key=repr
        )


UNREAD_BEFORE = """
    INSERT INTO product (id, identity, game, set_name, product_name, finish, language, provisional,
                         set_key, name_key, variant_key, number_key, sealed)
    OVERRIDING SYSTEM VALUE
    VALUES (1, 'a', 'lorcana', 'Set', 'Elsa', '', 'English', true, 'set', 'elsa', '', '7', false);
    INSERT INTO seller (id, name, email) OVERRIDING SYSTEM VALUE
    VALUES (1, 'A', 'a@x'), (2, 'B', 'b@x');
    INSERT INTO card (seller_id, id, marketplace_id, listing_id, product_id, identity_hash,
                      observed_at, created_at, updated_at, quantity, condition, printing, language,
                      product_line, match, product_line_label, set_name, product_name, title, number,
                      rarity, condition_label, photo_url)
    SELECT s.id, 1000 + n, 1000 + n, 1000 + n, 1, 77, now(), now(), now(), 1,
           CASE WHEN n = 1 THEN 'NM' END, '', 'English', 'lorcana', 'provisional', '', 'Set', 'Elsa',
           '', '7', '', '', ''
      FROM seller s, generate_series(1, 2) n;
"""


@pytest.mark.day
def test_cards_whose_condition_was_not_read_are_read_with_the_next_upload(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0097", UNREAD_BEFORE) as connection:
        said = connection.execute("SELECT id, identity_hash FROM card ORDER BY id, seller_id")
        assert said.fetchall() == [(1001, 77), (1001, 77), (1002, 0), (1002, 0)]


# As a build that was killed leaves it.
HALF_BUILT = """
    CREATE INDEX ix_card_product ON card (seller_id, product_id);
    UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_card_product'::regclass;
"""
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_card_product'::regclass"


@pytest.mark.day
def test_an_index_whose_build_was_killed_is_built_again(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0080", HALF_BUILT) as connection:
        assert connection.execute(VALID).fetchone() == (True,)


SHELVED_BEFORE = """
    INSERT INTO seller (id, name, email) OVERRIDING SYSTEM VALUE
    VALUES (1, 'A', 'a@x'), (2, 'B', 'b@x');
    INSERT INTO card_location (seller_id, card_id, box, slot, quantity)
    SELECT s.id, p.box, p.box, 7, 2 FROM seller s, (VALUES (3), (12), (1000000)) AS p (box);
    INSERT INTO shelf_count (seller_id, box, begun_by, begun_at) VALUES (1, 12, 'owner', now());
"""
LABELED_SINCE = """
    INSERT INTO shelf_box (seller_id, box, label, way)
    VALUES (2, 1000001, 'Binder 10', ':binder 000000000010'),
           (2, 1000002, 'Binder 2', ':binder 000000000002');
    INSERT INTO card_location (seller_id, card_id, box, slot, quantity)
    VALUES (2, 10, 1000001, 1, 1), (2, 2, 1000002, 1, 1), (2, 11, 1000001, 2, 3);
    INSERT INTO shelf_count (seller_id, box, box_label, begun_by, begun_at)
    VALUES (2, 1000002, 'Binder 2', 'owner', now());
    DELETE FROM card_location WHERE seller_id = 2 AND box = 1000000;
"""
LIES = "SELECT seller_id, card_id, box, slot, quantity FROM card_location ORDER BY 1, 2"


@pytest.mark.day
def test_boxes_with_numbers_stay_and_labeled_ones_get_free_numbers_on_the_way_back(
    owner_url: str, owner: psycopg.Connection
) -> None:
    with migrated_from(owner_url, owner, "0109", SHELVED_BEFORE) as connection:
        numbers = [(seller, box, box, 7, 2) for seller in (1, 2) for box in (3, 12, 1_000_000)]
        assert connection.execute(LIES).fetchall() == numbers
        rewritten = "SELECT oid <> pg_relation_filenode(oid) FROM pg_class WHERE relname = %s"
        assert connection.execute(rewritten, ["card_location"]).fetchone() == (False,)
        connection.execute(LABELED_SINCE)
        connection.commit()
        plain = libpq_url(connection.info.dsn, role=None)
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
        with create_engine(engine_url(plain), poolclass=NullPool).connect() as back:
            config.attributes["connection"] = back
            command.downgrade(config, "0109")
        assert connection.execute(LIES).fetchall() == [
            *numbers[:3],
            (2, 2, 13, 1, 1),
            (2, 3, 3, 7, 2),
            (2, 10, 14, 1, 1),
            (2, 11, 14, 2, 3),
            (2, 12, 12, 7, 2),
        ]
        counts = "SELECT seller_id, box FROM shelf_count ORDER BY 1"
        assert connection.execute(counts).fetchall() == [(1, 12), (2, 13)]
        connection.commit()
        migrate(connection.info.dsn)
        assert len(connection.execute(LIES).fetchall()) == 8

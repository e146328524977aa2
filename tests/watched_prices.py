"""Refuses each commit that changes what the figures of the price file depend on, but not the
revision that outdates them (ADR 55).

`conftest.py` gives the triggers to the databases of tests; no other database has them, and a
cluster's distributed tables take none.
"""

from __future__ import annotations

from typing import Final

from cardsync.platform.database.urls import BACKUP_ROLE

# The columns of cards that decide whether a card is in the price file, and its figures.
COLUMNS: Final = (
    "marketplace_id",
    "listing_id",
    "quantity",
    "gone",
    "custom",
    "product_line",
    "price",
    "target_price",
    "contribution",
    "my_store_priced",
)
# A test's own SQL is not a writer of the program, so it may be excused.
BY_HAND: Final = "SELECT set_config('watched_prices.by_hand', 'on', true)"
REFUSED: Final = "but not the revision of its prices"


def _of(row: str) -> str:
    return f"({', '.join(f'{row}.{name}' for name in COLUMNS)})"


def _noted(name: str, rows: str) -> str:
    """A function that notes the sellers of rows, whose check is at the commit."""
    return f"""
        CREATE FUNCTION watched_prices.{name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        AS $$
        BEGIN
            INSERT INTO watched_prices.changed SELECT DISTINCT seller_id FROM {rows};
            RETURN NULL;
        END $$
    """


def _watched(event: str, function: str, tables: str) -> str:
    return f"""
        CREATE TRIGGER watched_{event.lower()} AFTER {event} ON card REFERENCING {tables}
           FOR EACH STATEMENT EXECUTE FUNCTION watched_prices.{function}()
    """


_CHANGED: Final = f"""
    (SELECT n.seller_id FROM new_cards n JOIN old_cards o USING (seller_id, id)
      WHERE {_of("n")} IS DISTINCT FROM {_of("o")}
        AND (n.contribution IS NULL OR o.contribution IS NULL)) cards
"""
_LISTED: Final = "{0} cards WHERE contribution IS NULL"
# While a shop is removed, table by table, nobody reads it any more.
_IN_USE: Final = """
    NOT EXISTS (SELECT FROM account_deletion d
                 WHERE d.seller_id = cards.seller_id AND d.begun_at IS NOT NULL)
"""
STATEMENTS: Final = (
    "CREATE SCHEMA watched_prices",
    "CREATE UNLOGGED TABLE watched_prices.changed (seller_id bigint NOT NULL)",
    """
    CREATE FUNCTION watched_prices.moved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('watched_prices.moved', concat(
            current_setting('watched_prices.moved', true), ' ',
            coalesce(NEW.seller_id, OLD.seller_id), ' '), true);
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION watched_prices.check() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('watched_prices.moved', true) LIKE '% ' || NEW.seller_id || ' %'
           OR current_setting('watched_prices.by_hand', true) = 'on' THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION 'a transaction changed cards or product lines of seller %, {REFUSED}',
            NEW.seller_id;
    END $$
    """,
    """
    CREATE FUNCTION watched_prices.lines_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    AS $$
    BEGIN
        INSERT INTO watched_prices.changed VALUES (NEW.seller_id);
        RETURN NULL;
    END $$
    """,
    _noted("cards_came", _LISTED.format("new_cards")),
    _noted("cards_changed", _CHANGED),
    _noted("cards_went", f"{_LISTED.format('old_cards')} AND {_IN_USE}"),
    _watched("INSERT", "cards_came", "NEW TABLE AS new_cards"),
    _watched("UPDATE", "cards_changed", "OLD TABLE AS old_cards NEW TABLE AS new_cards"),
    _watched("DELETE", "cards_went", "OLD TABLE AS old_cards"),
    """
    CREATE TRIGGER watched_lines AFTER UPDATE OF product_lines ON account FOR EACH ROW
      WHEN (NEW.product_lines IS DISTINCT FROM OLD.product_lines)
      EXECUTE FUNCTION watched_prices.lines_changed()
    """,
    """
    CREATE TRIGGER watched_revision AFTER UPDATE ON sync_state FOR EACH ROW
      WHEN (NEW.prices_revision > OLD.prices_revision)
      EXECUTE FUNCTION watched_prices.moved()
    """,
    # A shop that arrives with its figures, or goes with all its rows.
    """
    CREATE TRIGGER watched_state AFTER INSERT OR DELETE ON sync_state FOR EACH ROW
      EXECUTE FUNCTION watched_prices.moved()
    """,
    """
    CREATE CONSTRAINT TRIGGER watched AFTER INSERT ON watched_prices.changed
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watched_prices.check()
    """,
    # Backups of such a database hold the watch, too.
    f"GRANT USAGE ON SCHEMA watched_prices TO {BACKUP_ROLE}",
    f"GRANT SELECT ON watched_prices.changed TO {BACKUP_ROLE}",
)

"""Writes tests/schemas/REVISION.sql.gz: a database of this program with data in every table, as
statements that psycopg runs. docs/releases.md says when: `python tests/make_schema_dump.py`.

The demo fills what it can. Each other table gets a row of plain values, which belongs to a shop
that no story of a test touches.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import psycopg

from cardsync.operations.processes import embedded
from cardsync.operations.processes.embedded_host import bundled

SCHEMAS: Final = Path(__file__).parent / "schemas"
TABLES: Final = """
    SELECT relname FROM pg_class
     WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition
     ORDER BY relname
"""
# Years of prices of the demo and every misspelling of its names would be most of the dump.
LESS: Final = """
    DELETE FROM price_observation o WHERE (seller_id, card_id) NOT IN
        (SELECT seller_id, id FROM card ORDER BY seller_id, id LIMIT 20);
    DELETE FROM catalog_typo WHERE word NOT LIKE 'a%';
    DELETE FROM procrastinate_jobs;
    DELETE FROM rate_limit WHERE random() > 0.2;
"""
# Columns whose name does not say by itself what they refer to, or whose value has to be a real one.
VALUES: Final = {
    "box": "1000001",
    "card_id": "(SELECT id FROM card WHERE seller_id = {shop} ORDER BY id LIMIT 1)",
    "order_id": "(SELECT min(id) FROM orders)",
    "member_id": "(SELECT min(id) FROM member WHERE seller_id = {shop})",
    "product_id": "(SELECT min(id) FROM product)",
    "seller_id": "{shop}",
    "stream": "'sales_sums'",
    "version": "'1'",
}
# Rows that follow a rule across tables or columns; a table that is not here gets plain values.
ROWS: Final = {
    "price_decision": "(seller_id, kind, marketplace_id, price) VALUES ({shop}, 'pin', 1, 5)",
    "order_restock": "(seller_id, order_id, restocked_at, placed)"
    " SELECT seller_id, id, now(), '[]' FROM orders ORDER BY id LIMIT 1",
    "pull_session_order": "(seller_id, session_id, order_id, shipping_type, item_count)"
    " SELECT o.seller_id, s.id, o.id, 'pwe', 1 FROM orders o JOIN pull_session s"
    " ON s.seller_id = o.seller_id ORDER BY o.id LIMIT 1",
    "procrastinate_jobs": "(queue_name, task_name, status) VALUES ('x', 'x', 'succeeded')",
    "pull_session": "(seller_id, opened_at) SELECT min(seller_id), now() FROM orders",
}
COLUMNS: Final = """
    SELECT a.attname, format_type(a.atttypid, NULL),
           (SELECT k.confrelid::regclass::text FROM pg_constraint k
             WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey)
             ORDER BY cardinality(k.conkey) DESC LIMIT 1),
           (SELECT f.attname FROM pg_constraint k, unnest(k.conkey, k.confkey) AS u(mine, theirs)
              JOIN pg_attribute f ON f.attnum = u.theirs
             WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND u.mine = a.attnum
               AND f.attrelid = k.confrelid ORDER BY cardinality(k.conkey) DESC LIMIT 1),
           (SELECT substring(pg_get_constraintdef(k.oid) FROM '\\[(''[^'']*'')')
              FROM pg_constraint k
             WHERE k.conrelid = a.attrelid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum])
      FROM pg_attribute a
     WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
       AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
     ORDER BY a.attnum
"""
PLAIN: Final = {
    "text": "'x'",
    "character varying": "'x'",
    "bigint": "1",
    "integer": "1",
    "numeric": "1",
    "double precision": "1",
    "boolean": "false",
    "jsonb": "'{}'",
    "bytea": "'\\x00'",
    "date": "current_date",
    "timestamp with time zone": "now()",
    "text[]": "'{}'",
    "bigint[]": "'{}'",
}


def fill(connection: psycopg.Connection) -> None:
    """Put a row in each empty table, those that others refer to first. Raises the last refusal."""
    shop = connection.execute("SELECT max(id) FROM seller").fetchone()
    assert shop is not None
    waiting = [name for (name,) in connection.execute(TABLES) if _is_empty(connection, name)]
    while waiting:
        refused: list[tuple[str, psycopg.Error]] = []
        for table in waiting:
            try:
                connection.execute(f"INSERT INTO {table} {_row(connection, table, shop[0])}")
                if _is_empty(connection, table):
                    raise psycopg.DataError(f"no row for {table}")
            except psycopg.Error as e:
                refused.append((table, e))
        if len(refused) == len(waiting):
            raise SystemExit("\n".join(f"{table}: {error}" for table, error in refused))
        waiting = [table for table, _ in refused]


def _is_empty(connection: psycopg.Connection, table: str) -> bool:
    return connection.execute(f"SELECT FROM {table} LIMIT 1").fetchone() is None


def _row(connection: psycopg.Connection, table: str, shop: int) -> str:
    if table in ROWS:
        return ROWS[table].replace("{shop}", str(shop))
    values = {}
    for name, kind, referred, column, choice in connection.execute(COLUMNS, [table]):
        # All columns of a reference come from one row.
        value = f"(SELECT {column} FROM {referred} ORDER BY ctid DESC LIMIT 1)"
        alone = referred in (None, "seller", "member")
        values[name] = (VALUES.get(name) if alone else value) or choice or PLAIN[kind]
    if not values:
        return "DEFAULT VALUES"
    row = f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
    return row.replace("{shop}", str(shop))


def dump(url: str) -> str:
    """Return the database as statements, without what only one version of PostgreSQL reads."""
    program = bundled()[max(bundled())] / "bin" / "pg_dump"
    command = [str(program), "--inserts", "--rows-per-insert=500", "--no-owner", "--dbname", url]
    written = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    newer = re.compile(r"^(\\(un)?restrict |SET transaction_timeout).*\n", re.MULTILINE)
    owner = re.compile(r"^(ALTER DEFAULT PRIVILEGES) FOR ROLE \w+", re.MULTILINE)
    return owner.sub(r"\1", newer.sub("", written))


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        data = Path(folder) / "data"
        program = [sys.executable, "-m", "cardsync", "demo", "--exit", "--data-dir", str(data)]
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        key = json.loads((data / "demo" / "seller.json").read_text())["api_key"]
        with (
            embedded.running(data) as server,
            psycopg.connect(server.admin_url(), autocommit=True) as connection,
        ):
            connection.execute(LESS)
            fill(connection)
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            assert found is not None
            text = f"-- key: {key}\n{dump(server.admin_url())}\n"
    SCHEMAS.mkdir(exist_ok=True)
    path = SCHEMAS / f"{found[0]}.sql.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    sys.stdout.write(f"{path}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()

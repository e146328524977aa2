"""A copy in another language is the same product: provisional products that differ by language
alone are one, which whatever named another of them names now. Cards in other languages are held
against the catalog again at the next upload of their shop.

A thousand rows are changed at a time, each thousand by itself, so that a migration that was killed
goes on and nobody waits. What a program before this one writes meanwhile, the next upload finds.
"""

from collections.abc import Iterator
from typing import Any

from alembic import op
from sqlalchemy.exc import IntegrityError

revision = "0094"
down_revision = "0093"

AT_ONCE = 1000
# Products of the line that is in one language keep theirs.
OF_ITS_OWN = "pokemon_japan"
KEYS = (
    "game",
    "set_key",
    "name_key",
    "back_key",
    "variant_key",
    "number_key",
    "number_total",
    "finish_key",
)
# The identity that an English row of the same card has.
SPOKEN = f"""
    SELECT id, md5(array_to_string(ARRAY['row', {", ".join(KEYS)}, 'en'], chr(31), '')) AS own
      FROM product
     WHERE provisional AND adopted_by IS NULL AND language_key IS DISTINCT FROM 'en'
       AND game <> '{OF_ITS_OWN}' AND id > %(after)s
     ORDER BY id LIMIT {AT_ONCE}
"""
FOUND = """
    unnest(CAST(%(ids)s AS bigint[]), CAST(%(own)s AS text[])) AS found (id, own)
"""
# The first becomes the product of all languages, unless there is one.
FIRST = f"""
    UPDATE product p SET identity = f.own, language = 'English', language_key = 'en'
      FROM (SELECT DISTINCT ON (own) own, id FROM {FOUND} ORDER BY own, id) AS f
     WHERE p.id = f.id AND p.provisional AND p.adopted_by IS NULL
       AND NOT EXISTS (SELECT FROM product q WHERE q.identity = f.own)
"""
OTHERS = f"""
    UPDATE product p SET adopted_by = coalesce(q.adopted_by, q.id)
      FROM {FOUND} JOIN product q ON q.identity = found.own
     WHERE p.id = found.id AND p.id <> q.id AND p.provisional AND p.adopted_by IS NULL
"""
# Only a product of all languages has adopted a product and is provisional itself.
JOINED = "product p JOIN product q ON q.id = p.adopted_by AND p.provisional AND q.provisional"
# Without the hash of its texts a card is held against the catalog again.
CARDS = f"""
    WITH chosen AS MATERIALIZED (
        SELECT id, product_id FROM card
         WHERE seller_id = %(seller)s AND id > %(after)s AND match <> 'matched'
           AND language <> 'English' AND product_line <> '{OF_ITS_OWN}'
         ORDER BY id LIMIT {AT_ONCE}),
    changed AS (
        UPDATE card c SET identity_hash = 0, product_id = coalesce(q.id, c.product_id)
          FROM chosen JOIN product p ON p.id = chosen.product_id
          LEFT JOIN product q ON q.id = p.adopted_by AND p.provisional AND q.provisional
         WHERE c.seller_id = %(seller)s AND c.id = chosen.id AND c.product_id = chosen.product_id
           AND c.match <> 'matched' AND (c.identity_hash <> 0 OR q.id IS NOT NULL))
    SELECT max(id) FROM chosen
"""
NAMED = (
    ("quick_add", "product_id"),
    ("buying_offer_line", "product_id"),
    ("collection_row", "product_id"),
    ("settled_match", "was_product_id"),
)
ROWS = f"""
    UPDATE {{table}} t SET {{column}} = q.id FROM {JOINED}
     WHERE t.seller_id = %(seller)s AND t.{{column}} = p.id
"""
# Offers of joined products come again at the next sync of their shops.
SHARED = (
    f"DELETE FROM network_offer t USING {JOINED} WHERE t.product_id = p.id",
    f"""INSERT INTO network_miss (product_id, caller, asked_on)
        SELECT q.id, t.caller, max(t.asked_on) FROM network_miss t, {JOINED}
         WHERE t.product_id = p.id GROUP BY q.id, t.caller
        ON CONFLICT DO NOTHING""",
    f"DELETE FROM network_miss t USING {JOINED} WHERE t.product_id = p.id",
)


def run(statement: str, **values: Any) -> Any:
    return op.get_bind().exec_driver_sql(statement, values)


def join_products() -> None:
    after = 0
    while found := run(SPOKEN, after=after).fetchall():
        named = {"ids": [row[0] for row in found], "own": [row[1] for row in found]}
        try:
            run(FIRST, **named)
        except IntegrityError:
            # An upload has made the product meanwhile.
            continue
        run(OTHERS, **named)
        after = found[-1][0]


def each_seller() -> Iterator[int]:
    """Act as seller after seller: rows of others are out of reach meanwhile."""
    try:
        for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
            run("SELECT set_config('app.seller_id', %(id)s, false)", id=str(seller_id))
            yield seller_id
    finally:
        run("SELECT set_config('app.seller_id', '', false)")


def follow(seller_id: int) -> None:
    """Let what the seller's rows name be the joined products."""
    last = 0
    while last is not None:
        last = run(CARDS, seller=seller_id, after=last).scalar()
    for table, column in NAMED:
        run(ROWS.format(table=table, column=column), seller=seller_id)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # Rows that an upload holds are waited for: nobody waits for this.
        patience = run("SHOW lock_timeout").scalar()
        run("SET lock_timeout = 0")
        try:
            join_products()
            for seller_id in each_seller():
                follow(seller_id)
            for statement in SHARED:
                run(statement)
        finally:
            run(f"SET lock_timeout = '{patience}'")


def downgrade() -> None:
    pass

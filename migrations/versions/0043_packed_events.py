"""The moved prices of an event are packed bytes: JSON of fifty thousand rows cost more than all else
of its answer. Rows that wait stay JSON, which `rollback/packed_rows.py` reads, too.
"""

from alembic import op

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE repricing_event
            ALTER COLUMN rows TYPE bytea USING convert_to(rows::text, 'UTF8'),
            ALTER COLUMN rows SET STORAGE EXTERNAL
    """)


def downgrade() -> None:
    # Packed rows cannot be read by SQL. Nothing is lost for good: the next upload tells the prices.
    op.execute("""
        ALTER TABLE repricing_event ALTER COLUMN rows TYPE jsonb
            USING CASE WHEN get_byte(rows, 0) = ascii('[')
                       THEN convert_from(rows, 'UTF8')::jsonb END
    """)

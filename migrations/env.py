"""Alembic's environment: runs on the connection that `cardsync.platform.database.migrate` hands over, each
migration in a transaction of its own unless the connection is in one.
"""

from alembic import context

from cardsync.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()

"""Alembic's environment: runs on the connection that `cardsync.database.migrate` hands over, in
its transaction.
"""

from alembic import context

from cardsync.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()

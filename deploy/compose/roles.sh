#!/bin/sh
# Makes the role that web and worker processes sign in as, when PostgreSQL makes its data folder.
set -eu
export APP_PASSWORD="$(cat /run/secrets/app_password)"
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'END'
\getenv password APP_PASSWORD
CREATE ROLE cardsync_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'password';
END

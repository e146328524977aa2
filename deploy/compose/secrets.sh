#!/bin/sh
# Makes the secrets of compose.yaml once: the folder secrets, and .env. Keep both as private as the shops.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
  echo "there are secrets already; remove the folder secrets and .env to make new ones" >&2
  exit 1
fi
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
mkdir secrets
app=$(random) owner=$(random) store=$(random)
printf %s "$app" >secrets/app_password
printf %s "$owner" >secrets/owner_password
random >secrets/secret_key
printf %s "postgresql://cardsync_app:$app@database/cardsync" >secrets/database_url
printf %s "postgresql://owner:$owner@database/cardsync" >secrets/migration_database_url
cat >secrets/store_config <<END
{"identities": [{"name": "cardsync", "credentials": [{"accessKey": "cardsync", "secretKey": "$store"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
END
printf 'CARDSYNC_STORE_SECRET=%s\n' "$store" >.env
# The containers' users read these files; no other user of this host enters the folder.
chmod 644 secrets/*

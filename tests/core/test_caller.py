"""A caller is read by one query; its columns are the fields of the structs."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from cardsync.access.caller import (
    CALLER,
    EVERY_SCOPE,
    Caller,
    CallerAccount,
    Identity,
    SellerState,
    read_row,
)
from cardsync.access.models import Account
from cardsync.access.sessions import SESSION_CALLER
from cardsync.agents.seller_state.models import SyncState
from cardsync.platform import errors

FIELDS = (*CallerAccount.__struct_fields__, *SellerState.__struct_fields__)


@pytest.mark.parametrize(("struct", "table"), [(CallerAccount, Account), (SellerState, SyncState)])
def test_each_field_is_a_column_that_is_null_where_the_field_may_be_none(struct, table):
    columns = table.__table__.columns
    for name, kind in get_type_hints(struct).items():
        assert (type(None) in get_args(kind)) == columns[name].nullable, name


def test_a_row_is_read_in_the_order_of_the_query():
    for query, further in ((CALLER, ["ends_at", "replaces"]), (SESSION_CALLER, ["id", "role"])):
        selected = query.sql.split("FROM")[0].replace("SELECT", "").split(",")
        names = [column.strip().partition(".")[2] for column in selected]
        account, state, rest = read_row(names)
        assert all(getattr(account, name) == name for name in CallerAccount.__struct_fields__)
        assert all(getattr(state, name) == name for name in SellerState.__struct_fields__)
        assert list(rest)[:2] == further


def a_caller(identity: Identity) -> Caller:
    account, state, _ = read_row([None] * len(FIELDS))
    return Caller(identity, account, state)


def test_a_key_and_a_session_have_every_scope():
    key, session = Identity(7, "key", 1), Identity(7, "session", 2, 3, "staff")
    assert key.scopes == session.scopes == EVERY_SCOPE == {"mcp:read", "mcp:write"}


def test_the_holder_of_a_key_may_do_what_an_owner_may_and_staff_may_not():
    a_caller(Identity(7, "key", 1)).must_be_owner()
    a_caller(Identity(7, "session", 2, 3, "owner")).must_be_owner()
    with pytest.raises(errors.OwnerRequired):
        a_caller(Identity(7, "session", 2, 4, "staff")).must_be_owner()


def test_the_activity_feed_names_the_member_the_token_or_the_key():
    assert a_caller(Identity(7, "key", 1)).actor == "key 1"
    assert a_caller(Identity(7, "session", 2, 3)).actor == "member 3"
    assert a_caller(Identity(7, "token", 5, scopes=frozenset({"mcp:read"}))).actor == "token 5"
    assert a_caller(Identity(7, "token", 5, grant_id=2)).actor == "grant 2"

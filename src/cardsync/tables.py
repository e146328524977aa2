"""Collects all tables in one metadata, for migrations, the tenancy test and the erasure of a
seller.

Importing this imports every model.
"""

from __future__ import annotations

from sqlalchemy import Table

from cardsync.access import activity
from cardsync.access import grant_models as grants
from cardsync.access import member_models as members
from cardsync.access import models as accounts
from cardsync.access.rate_limits import models as rate_limits
from cardsync.agentwork import models as agentwork
from cardsync.cards import models as cards
from cardsync.catalog import models as catalog
from cardsync.contributions import models as contributions
from cardsync.credits import models as credits
from cardsync.database.columns import Base
from cardsync.derived import models as figures
from cardsync.discovery import models as discovery
from cardsync.inventory import models as inventory
from cardsync.lists import models as lists
from cardsync.market import models as market
from cardsync.notices import models as notices
from cardsync.old_data import models as old_data
from cardsync.operations import models as operations
from cardsync.orders import models as orders
from cardsync.orders import pull_models as pulls
from cardsync.pictures import models as pictures
from cardsync.plans import models as plans
from cardsync.pricing import models as pricing
from cardsync.proposals import models as proposals
from cardsync.pulling import models as pulling
from cardsync.quick_add import models as quick_add
from cardsync.recommendations import models as recommendations
from cardsync.releases import models as releases
from cardsync.repairs import models as repairs
from cardsync.seller_state import models as seller_state
from cardsync.shelving import models as shelving
from cardsync.sync import models as sync
from cardsync.today import models as today
from cardsync.work import jobs
from cardsync.work import models as uploads
from cardsync.workflows import models as workflows

metadata = Base.metadata

# Tables that carry a seller_id and yet belong to no tenant: sign-in looks sellers up in them,
# sweeps work across sellers, repairs are counted across sellers, the network is read by product.
# docs/tenancy.md says why of each.
GLOBAL_BY_SELLER = frozenset(
    {
        "member",
        "member_session",
        "invitation",
        "passkey",
        "account_deletion",
        "api_key",
        "access_token",
        "oauth_code",
        "refresh_token",
        "agent_seen",
        "work_due",
        "shared_repair_vote",
        "network_seller",
        "network_offer",
        "network_cell",
        "network_look",
    }
)


def tenant_tables() -> list[Table]:
    """Every table under row-level security, referring tables first."""
    tables = [
        t
        for t in metadata.sorted_tables
        if "seller_id" in t.columns and t.name not in GLOBAL_BY_SELLER
    ]
    return tables[::-1]


def seller_tables() -> list[Table]:
    """Every table that names a seller, and `seller`, in the order in which they can be written."""
    return [t for t in metadata.sorted_tables if "seller_id" in t.columns or t.name == "seller"]


__all__ = [
    "accounts",
    "activity",
    "agentwork",
    "cards",
    "catalog",
    "contributions",
    "credits",
    "discovery",
    "figures",
    "grants",
    "inventory",
    "jobs",
    "lists",
    "market",
    "members",
    "metadata",
    "notices",
    "old_data",
    "operations",
    "orders",
    "pictures",
    "plans",
    "pricing",
    "proposals",
    "pulling",
    "pulls",
    "quick_add",
    "rate_limits",
    "recommendations",
    "releases",
    "repairs",
    "seller_state",
    "seller_tables",
    "shelving",
    "sync",
    "tenant_tables",
    "today",
    "uploads",
    "workflows",
]

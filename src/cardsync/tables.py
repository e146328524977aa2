"""Collects all tables in one metadata, for migrations, the tenancy test and the erasure of a
seller.

Importing this module imports every model.
"""

from __future__ import annotations

from sqlalchemy import Table

from cardsync.access import activity
from cardsync.access import grant_models as grants
from cardsync.access import member_models as members
from cardsync.access import models as accounts
from cardsync.access.rate_limits import buckets as rate_limits
from cardsync.agents.agentwork import models as agentwork
from cardsync.agents.releases import models as releases
from cardsync.agents.repairs import models as repairs
from cardsync.agents.seller_state import models as seller_state
from cardsync.agents.sync import models as sync
from cardsync.agents.workflows import publish_packs as workflows
from cardsync.buying.buylist import buylist_settings as buylist
from cardsync.buying.collections import models as collections
from cardsync.buying.offers import models as offers
from cardsync.buying.rules import models as buy_rules
from cardsync.buying.store_credit import models as store_credit
from cardsync.catalog import models as catalog
from cardsync.catalog.market import models as market
from cardsync.imports import accept_inventory as inventory
from cardsync.network import models as discovery
from cardsync.platform.backups import backup_reports as operations
from cardsync.platform.database.columns import Base
from cardsync.platform.derived import models as figures
from cardsync.platform.old_data import models as old_data
from cardsync.platform.work import jobs
from cardsync.platform.work import models as uploads
from cardsync.prices import models as pricing
from cardsync.prices.plans import models as plans
from cardsync.prices.proposals import models as proposals
from cardsync.prices.recommendations import generate as recommendations
from cardsync.sales.lots import models as lots
from cardsync.sales.orders import models as orders
from cardsync.sales.orders import pull_models as pulls
from cardsync.sales.pulling import models as pulling
from cardsync.shop.credits import ledger as credits
from cardsync.shop.notices import models as notices
from cardsync.shop.today import last_visit as today
from cardsync.stock.cards import models as cards
from cardsync.stock.contributions import promote as contributions
from cardsync.stock.lists import models as lists
from cardsync.stock.pictures import models as pictures
from cardsync.stock.quick_add import models as quick_add
from cardsync.stock.shelving import models as shelving

metadata = Base.metadata

# Tables with a seller_id but without row-level security: sign-in finds sellers by them, or they are
# read across sellers. docs/tenancy.md has the reason for each table.
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

# In a distributed database (docs/distribution.md), each node has a copy of these tables, because
# statements join them with sellers' rows.
EVERYWHERE = frozenset({"product"})
# In a distributed database, only the coordinator has these tables. The rows of all tables that are
# in none of these sets are distributed by seller.
WITH_THE_COORDINATOR = GLOBAL_BY_SELLER | {
    "backup_report",
    "catalog_import",
    "catalog_install",
    "catalog_name",
    "catalog_set",
    "catalog_typo",
    "catalog_updates",
    "catalog_word",
    "identity_seal",
    "installation_operator",
    "market_cell",
    "market_listing",
    "market_look",
    "market_newest",
    "market_price",
    "market_sale",
    "market_sales_look",
    "network_miss",
    "oauth_client",
    # Tokens refer to a grant, and are found by their hash, without a seller.
    "oauth_grant",
    "passkey_challenge",
    "picture",
    "picture_host",
    "product_elsewhere",
    "rate_limit",
    "release",
    "release_kill",
    "seller",
    "shared_repair",
    "workflow_pack",
    "workflow_pack_kill",
}


def spread_tables() -> list[Table]:
    """Return the tables that are distributed by seller; a table is after the tables that it
    references.
    """
    away = EVERYWHERE | WITH_THE_COORDINATOR
    return [t for t in reversed(tenant_tables()) if t.name not in away]


def tables_everywhere() -> list[Table]:
    """Return the tables of which each node has a copy; a table is after the tables that it
    references.
    """
    return [t for t in metadata.sorted_tables if t.name in EVERYWHERE]


def tenant_tables() -> list[Table]:
    """Return the tables with row-level security; a table is before the tables that it references."""
    tables = [
        t
        for t in metadata.sorted_tables
        if "seller_id" in t.columns and t.name not in GLOBAL_BY_SELLER
    ]
    return tables[::-1]


def seller_tables() -> list[Table]:
    """Return `seller` and all tables with a seller_id; a table is after the tables that it
    references.
    """
    return [t for t in metadata.sorted_tables if "seller_id" in t.columns or t.name == "seller"]


__all__ = [
    "accounts",
    "activity",
    "agentwork",
    "buy_rules",
    "buylist",
    "cards",
    "catalog",
    "collections",
    "contributions",
    "credits",
    "discovery",
    "figures",
    "grants",
    "inventory",
    "jobs",
    "lists",
    "lots",
    "market",
    "members",
    "metadata",
    "notices",
    "offers",
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
    "spread_tables",
    "store_credit",
    "sync",
    "tables_everywhere",
    "tenant_tables",
    "today",
    "uploads",
    "workflows",
]

"""Updates a seller's row in `network_seller` in the transaction that changes the account, so that
the change affects the next answer of the network.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.entitlements import is_paid
from cardsync.access.models import Account
from cardsync.platform.derived.kept_figures import Figure, mark

# The fields of an account that are also in `network_seller`, or that affect it.
SEEN = frozenset(
    {
        "plan",
        "trial_ends_at",
        "suspended",
        "network_consent",
        "network_published",
        "store_name",
        "listing_url_template",
        "postage_steps",
    }
)


_EXPOSED: Final = "SELECT exposed FROM network_seller WHERE seller_id = :seller"


def date_switches(account: Account, now: datetime) -> None:
    """Record the times since which consent and publication are switched on."""
    if account.network_consent != (account.network_consented_at is not None):
        account.network_consented_at = now if account.network_consent else None
    if account.network_published != (account.network_published_at is not None):
        account.network_published_at = now if account.network_published else None


async def hide(session: AsyncSession, seller_id: int) -> None:
    """Remove a seller from the network's answers, until the next `follow`."""
    await session.execute(
        text("UPDATE network_seller SET suspended = true WHERE seller_id = :seller"),
        {"seller": seller_id},
    )


async def follow(session: AsyncSession, account: Account, now: datetime) -> None:
    """Copy the fields that the network's answers need from the account to `network_seller`."""
    date_switches(account, now)
    on_trial = account.plan == "trial" and account.trial_ends_at is not None
    paid = is_paid(account.plan, account.trial_ends_at, now)
    until = account.trial_ends_at if on_trial else None if paid else now
    await session.flush()
    exposed = account.network_consent and account.network_published
    known = {"seller": account.seller_id}
    was = await session.scalar(text(_EXPOSED), known)
    if bool(was) != exposed:
        await mark(session, account.seller_id, Figure.CELLS)
    await session.execute(
        text("""
            INSERT INTO network_seller (seller_id, exposed, suspended, paid_until, store_name,
                                        listing_url_template, postage_steps)
            VALUES (:seller, :exposed, :suspended, :until, :store, :template, :postage)
            ON CONFLICT (seller_id) DO UPDATE
               SET exposed = excluded.exposed, suspended = excluded.suspended,
                   paid_until = excluded.paid_until, store_name = excluded.store_name,
                   listing_url_template = excluded.listing_url_template,
                   postage_steps = excluded.postage_steps
        """),
        {
            "seller": account.seller_id,
            "exposed": exposed,
            "suspended": account.suspended,
            "until": until,
            "store": account.store_name,
            "template": account.listing_url_template,
            "postage": account.postage_steps,
        },
    )

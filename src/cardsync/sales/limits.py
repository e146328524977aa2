"""Limits of uploads, requests and lists about sales."""

from __future__ import annotations

ORDER_NUMBER_CHARACTERS = 200
BUYER_NAME_CHARACTERS = 500
STATUS_CHARACTERS = 200

SALES_REPORT_LOOKBACK_MONTHS = 24
SALES_REPORT_MONTHS_A_CYCLE = 2

SOLD_ORDERS_MOST = 100
ORDERS_PER_PAGE_MOST = 200
ITEMS_PER_ORDER = 20
ITEMS_PER_ORDER_MOST = 200
REFUND_TEXT_CHARACTERS = 500
PULL_SESSIONS_SHOWN = 10
SETTLED_CARDS_SHOWN = 100
PULL_STATUSES = 100

# Limits of pulling on phones: links and marks per pull session, marks per request, and open event
# streams per seller and process. Each link has its own maximum, so that a leaked link cannot use up
# the session's marks: `PULL_LINK_MARKS`, plus `PULL_LINK_MARKS_A_COPY` for each copy that the link
# shows, up to `PULL_LINK_MARKS_MOST`. Members' pages have a separate maximum of streams.
PULL_LINKS = 200
PULL_MARKS = 50_000
PULL_LINK_MARKS = 500
PULL_LINK_MARKS_A_COPY = 10
PULL_LINK_MARKS_MOST = 20_000
PULL_MARKS_AT_ONCE = 500
PULL_STREAMS = 30
PULL_LINK_STREAMS = 3
PULL_DESK_STREAMS = 10
PULL_QUANTITY = 10_000

SALES_SUMMARY_DAYS = 3_660
SALES_ITEMS_DAYS = 366
SALES_CARDS = 20
# Limits of lots: rows per file of lots or payments, lots per request, and rows of each report.
LOT_ROWS = 20_000
LOTS_AT_ONCE = 200
SOLD_WITHOUT_COST = 200
FEE_DIFFERENCES = 500

ORDERS_OF_CUSTOMER = 100
REFUNDERS_SHOWN = 200

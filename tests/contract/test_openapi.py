"""The interface description: in step with the program, structurally sound, and complete in
statuses, codes, bodies and headers.
"""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import a_csv, a_row
from callers import CALLERS, MORE_FOR_OWNERS
from cardsync.cli import program
from cardsync.platform import errors
from cardsync.web.openapi import opened

FILE = Path(__file__).parents[2] / "openapi.json"
DOCUMENT = json.loads(FILE.read_text())
OPERATIONS = {
    (method.upper(), path): operation
    for path, operations in opened(DOCUMENT)["paths"].items()
    for method, operation in operations.items()
}


def who_and_by(name: tuple[str, str]) -> tuple[str, str]:
    return CALLERS[" ".join(name)]


BEHIND_A_KEY = {
    name: operation for name, operation in OPERATIONS.items() if who_and_by(name)[0] != "stranger"
}


def callers(name: tuple[str, str]) -> list[str]:
    """The agent's routes take keys, all others sessions, and most of them keys and tokens too."""
    who, by = who_and_by(name)
    if who == "agent":
        return ["api_key"]
    few = {"session": ["session"], "key": ["api_key", "session"]}
    return few.get(by, ["api_key", "session", "token"])


def scopes(name: tuple[str, str]) -> list[str]:
    """The scope that a token needs on a route that takes tokens."""
    return [f"mcp:{who_and_by(name)[1]}"]


WITH_JSON_BODY = {
    ("POST", f"/api/{path}")
    for path in (
        "members/invitations",
        "account/deletion",
        "passkeys",
        "session/passkey",
        "keys",
        "v1/heartbeat",
        "v1/sync/request",
        "v1/sync/log",
        "v1/sync/debug",
        "v1/sync/upload-request",
        "pull_sessions",
        "pull_links",
        "session",
        "invitations/{token}",
        "shelves/put",
        "shelves/put_many",
        "shelves/rename",
        "shelves/move",
        "shelves/remove",
        "counts",
        "counts/{count_id}/seen",
        "counts/{count_id}/settle",
        "returns/{order_id}/restocked",
        "lists",
        "lists/{list_id}/cards",
        "buying/lots",
        "buying/lots/file",
        "buying/payments",
        "contributions",
        "saved_searches",
        "cards/{card_id}/match",
        "pricing/pins/pin_many",
        "pricing/pins/unpin_many",
        "quick_add",
        "quick_add/publish",
        "buying/offers",
        "buying/customers",
        "buying/customers/{customer_id}/credit",
        "buying/offers/{offer_id}/offer",
        "buying/offers/{offer_id}/accept",
        "buying/offers/{offer_id}/decline",
        "buying/offers/{offer_id}/receive",
        "buying/offers/{offer_id}/pay",
        "buying/offers/{offer_id}/stock",
        "quick_add/{entry_id}/settle",
        "buying/collections/{collection_id}/choices",
    )
} | {
    ("PATCH", "/api/members/{member_id}"),
    ("PATCH", "/api/members/me"),
    ("PATCH", "/api/buying/lots/{lot_id}"),
    ("PATCH", "/api/operator/sellers/{seller_id}"),
    ("PUT", "/api/customers/{key}/note"),
    ("PUT", "/api/card_columns"),
    ("PUT", "/api/card_columns/shop"),
    ("PATCH", "/api/saved_searches/{search_id}"),
    ("PATCH", "/api/quick_add/{entry_id}"),
    ("PATCH", "/api/buying/offers/{offer_id}"),
    ("PATCH", "/api/buying/customers/{customer_id}"),
    ("PATCH", "/api/buying/buylist"),
    ("PUT", "/api/buying/collections/{collection_id}/columns"),
    ("PATCH", "/api/lists/{list_id}"),
    ("DELETE", "/api/lists/{list_id}/cards"),
}
ORDER_UPLOADS = {
    ("POST", f"/api/v1/{path}")
    for path in ("orders", "order_refunds", "order_items", "orders/shipping", "order_feedbacks")
}
PROBLEMS = [kind for kind in errors.kinds_of(errors.Problem) if hasattr(kind, "status")]


def test_no_schema_is_named_by_the_place_of_its_module():
    """Two structs of one name would be; then a move of a module renames types of clients."""
    of_modules = re.compile("(Shown|Routes|Csv|Queries)[A-Z]")
    assert list(filter(of_modules.search, DOCUMENT["components"]["schemas"])) == []


@pytest.mark.day
def test_the_file_in_git_is_what_the_program_prints():
    printed = CliRunner().invoke(program, ["openapi"])
    assert printed.exit_code == 0
    assert FILE.read_text() == printed.output, "run: make openapi"


@pytest.mark.day
async def test_the_server_serves_the_same_document(service):
    async with service.client() as http:
        assert (await http.get("/openapi/openapi.json")).json() == DOCUMENT


def test_every_route_of_the_issue_is_there():
    assert set(OPERATIONS) == {
        ("POST", "/api/v1/heartbeat"),
        ("GET", "/api/v1/sync/pending"),
        ("POST", "/api/v1/sync/request"),
        ("POST", "/api/v1/sync/skip_wait"),
        ("GET", "/api/v1/status"),
        ("POST", "/api/v1/sync/upload-request"),
        ("PUT", "/objects/{key}"),
        ("POST", "/api/v1/sync"),
        ("GET", "/api/v1/sync/cycles"),
        ("GET", "/api/v1/sync/cycles/{cycle_id}"),
        ("GET", "/api/v1/sync/screenshots/{screenshot_id}"),
        ("GET", "/api/v1/uploads"),
        ("GET", "/api/v1/uploads/{upload_id}"),
        ("GET", "/api/v1/uploads/{upload_id}/rejected.csv"),
        ("POST", "/api/v1/uploads/{upload_id}/mend"),
        ("POST", "/api/v1/uploads/{upload_id}/confirm"),
        ("POST", "/api/v1/uploads/{upload_id}/discard"),
        ("GET", "/api/v1/export/price-updates"),
        ("POST", "/api/v1/repricing_events"),
        ("POST", "/api/v1/repricing_events/failure"),
        ("POST", "/api/v1/sync/log"),
        ("POST", "/api/v1/sync/debug"),
        ("GET", "/api/v1/desktop/update"),
        ("GET", "/downloads/{product}/{version}/{path}"),
        ("POST", "/api/v1/sync/cancel"),
        ("DELETE", "/api/v1/sync/approve_upload"),
        ("POST", "/api/v1/sales_report"),
        ("GET", "/api/v1/sales_report"),
        ("GET", "/api/v1/sales_report/gaps"),
        ("POST", "/api/v1/tasks"),
        ("GET", "/api/v1/agent/activity"),
        ("POST", "/api/v1/agent/activity/{activity_id}/undo"),
        ("POST", "/api/v1/agent/plans"),
        ("GET", "/api/v1/agent/plans"),
        ("GET", "/api/v1/agent/plans/{plan_id}"),
        ("POST", "/api/v1/agent/plans/{plan_id}/confirm"),
        ("POST", "/api/v1/agent/plans/{plan_id}/decline"),
        ("GET", "/api/v1/agent/plans/permissions"),
        ("PATCH", "/api/v1/agent/plans/permissions"),
        ("POST", "/api/v1/workflow/heal"),
        ("GET", "/api/v1/workflow/packs/{marketplace}"),
        ("POST", "/api/v1/workflow/corrections"),
        ("POST", "/api/v1/workflow/corrections/{correction_id}/failure"),
        ("GET", "/api/v1/tasks"),
        ("POST", "/api/v1/tasks/claim"),
        ("PATCH", "/api/v1/tasks/{task_id}"),
        ("GET", "/api/account"),
        ("PATCH", "/api/account"),
        ("GET", "/api/operator/sellers"),
        ("GET", "/api/operator/sellers/{seller_id}"),
        ("PATCH", "/api/operator/sellers/{seller_id}"),
        ("GET", "/api/operator/installation"),
        ("GET", "/api/operator/backups"),
        ("POST", "/api/operator/backups"),
        ("GET", "/api/operator/catalogs"),
        ("POST", "/api/operator/catalogs"),
        ("PATCH", "/api/operator/catalogs"),
        ("POST", "/api/operator/catalogs/back"),
        ("POST", "/api/operator/catalogs/files"),
        ("GET", "/api/members"),
        ("POST", "/api/members/invitations"),
        ("PATCH", "/api/members/{member_id}"),
        ("PATCH", "/api/members/me"),
        ("DELETE", "/api/members/{member_id}"),
        ("DELETE", "/api/members/{member_id}/sessions"),
        ("POST", "/api/members/{member_id}/link"),
        ("GET", "/api/assistants"),
        ("PATCH", "/api/assistants/{assistant_id}"),
        ("DELETE", "/api/assistants/{assistant_id}"),
        ("GET", "/api/sessions"),
        ("DELETE", "/api/sessions/{member_session_id}"),
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("POST", "/api/keys/{key_id}/replace"),
        ("PATCH", "/api/keys/{key_id}"),
        ("DELETE", "/api/keys/{key_id}"),
        ("GET", "/api/notices/choices"),
        ("PATCH", "/api/notices/choices"),
        ("GET", "/api/webhooks"),
        ("POST", "/api/webhooks"),
        ("PATCH", "/api/webhooks/{webhook_id}"),
        ("DELETE", "/api/webhooks/{webhook_id}"),
        ("POST", "/api/webhooks/{webhook_id}/secret"),
        ("POST", "/api/webhooks/{webhook_id}/test"),
        ("GET", "/api/webhooks/{webhook_id}/deliveries"),
        ("POST", "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay"),
        ("GET", "/api/export/everything"),
        ("GET", "/api/passkeys"),
        ("POST", "/api/passkeys"),
        ("POST", "/api/passkeys/options"),
        ("DELETE", "/api/passkeys/{passkey_id}"),
        ("POST", "/api/session/passkey"),
        ("POST", "/api/session/passkey/options"),
        ("GET", "/api/account/deletion"),
        ("POST", "/api/account/deletion"),
        ("DELETE", "/api/account/deletion"),
        ("POST", "/api/v1/pricing/explain/{marketplace_id}/changed"),
        ("GET", "/api/cards/{card_id}/behind"),
        ("GET", "/api/saved_searches"),
        ("POST", "/api/saved_searches"),
        ("PATCH", "/api/saved_searches/{search_id}"),
        ("DELETE", "/api/saved_searches/{search_id}"),
        ("GET", "/api/card_columns"),
        ("PUT", "/api/card_columns"),
        ("PUT", "/api/card_columns/shop"),
        ("GET", "/api/cards/{card_id}/match"),
        ("POST", "/api/cards/{card_id}/match"),
        ("GET", "/api/cards/{card_id}/orders"),
        ("POST", "/api/pricing/pins/pin_many"),
        ("POST", "/api/pricing/pins/unpin_many"),
        ("GET", "/api/orders/export.csv"),
        ("GET", "/api/customers/export.csv"),
        ("GET", "/api/lists/export.csv"),
        ("GET", "/api/pricing/runs/export.csv"),
        ("GET", "/api/v1/agent/activity/export.csv"),
        ("GET", "/api/orders"),
        ("GET", "/api/orders/{order_id}"),
        ("GET", "/api/customers"),
        ("GET", "/api/lists"),
        ("GET", "/api/lists/{list_id}"),
        ("POST", "/api/lists"),
        ("PATCH", "/api/lists/{list_id}"),
        ("DELETE", "/api/lists/{list_id}"),
        ("POST", "/api/lists/{list_id}/cards"),
        ("DELETE", "/api/lists/{list_id}/cards"),
        ("GET", "/api/today"),
        ("GET", "/api/network"),
        ("GET", "/api/listed_value"),
        ("GET", "/api/movers"),
        ("GET", "/api/sync_result"),
        ("GET", "/api/cards"),
        ("GET", "/api/cards/complete"),
        ("GET", "/analytics/clearing_coverage"),
        ("GET", "/api/analytics/clearing_coverage"),
        ("GET", "/api/market_depth/holds"),
        ("GET", "/api/market_depth/badges"),
        ("GET", "/api/pricing/reviews"),
        ("GET", "/api/waiting"),
        ("POST", "/api/waiting/{kind}/{waiting_id}"),
        ("POST", "/api/pricing/reviews/accept"),
        ("POST", "/api/pricing/reviews/dismiss"),
        ("POST", "/api/pricing/reviews/snooze"),
        ("GET", "/api/recommendations"),
        ("GET", "/api/recommendations/outcomes"),
        ("POST", "/api/recommendations/shown"),
        ("POST", "/api/recommendations/{recommendation_id}/accept"),
        ("POST", "/api/recommendations/{recommendation_id}/dismiss"),
        ("POST", "/api/recommendations/{recommendation_id}/snooze"),
        ("GET", "/api/cards/export.csv"),
        ("GET", "/api/cards/{card_id}"),
        ("POST", "/api/pull_sessions"),
        ("GET", "/api/pull_sessions/{session_id}"),
        ("POST", "/api/pull_sessions/{session_id}/orders/{order_id}/pulled"),
        ("POST", "/api/pull_sessions/{session_id}/orders/{order_id}/defer"),
        ("POST", "/api/pull_sessions/{session_id}/orders/{order_id}/unassign"),
        ("POST", "/api/pull_sessions/{session_id}/complete"),
        ("POST", "/api/pull_sessions/{session_id}/cancel"),
        ("POST", "/api/pull_links"),
        ("GET", "/api/pull_links"),
        ("DELETE", "/api/pull_links/{link_id}"),
        ("POST", "/api/orders/{order_id}/dismiss"),
        ("POST", "/api/orders/mark_shipped"),
        ("POST", "/api/orders/{order_id}/unmark_pulled"),
        ("POST", "/api/orders/{order_id}/missing/{item_id}"),
        ("GET", "/api/missing_cards"),
        ("POST", "/api/orders/{order_id}/undismiss"),
        ("POST", "/api/orders/{order_id}/mark_shipped"),
        ("POST", "/api/orders/{order_id}/unmark_shipped"),
        ("POST", "/api/pricing/reprice"),
        ("POST", "/api/pricing/preview"),
        ("POST", "/api/pricing/backtest"),
        ("GET", "/api/print/sheets"),
        ("GET", "/api/print/sheets/{key}"),
        ("GET", "/api/counts"),
        ("POST", "/api/counts"),
        ("GET", "/api/counts/suggested"),
        ("GET", "/api/counts/{count_id}"),
        ("POST", "/api/counts/{count_id}/seen"),
        ("POST", "/api/counts/{count_id}/settle"),
        ("POST", "/api/counts/{count_id}/cancel"),
        ("GET", "/api/customers/{key}"),
        ("PUT", "/api/customers/{key}/note"),
        ("GET", "/api/returns"),
        ("GET", "/api/returns/customers"),
        ("POST", "/api/returns/{order_id}/restocked"),
        ("POST", "/api/pricing/preview/draft"),
        ("POST", "/api/pricing/preview/sale"),
        ("POST", "/api/pricing/test"),
        ("GET", "/api/pricing/rule_tests"),
        ("POST", "/api/pricing/rule_tests"),
        ("PATCH", "/api/pricing/rule_tests/{test_id}"),
        ("DELETE", "/api/pricing/rule_tests/{test_id}"),
        ("POST", "/api/pricing/rule_tests/check"),
        ("GET", "/api/buying/lots"),
        ("GET", "/api/buying/lots.csv"),
        ("GET", "/api/buying/costs/{marketplace_id}"),
        ("GET", "/api/buying/profit"),
        ("GET", "/api/buying/profit.csv"),
        ("GET", "/api/buying/profit/orders/{order_id}"),
        ("GET", "/api/buying/profit/without_cost"),
        ("GET", "/api/buying/fees"),
        ("POST", "/api/buying/lots"),
        ("POST", "/api/buying/lots/file"),
        ("PATCH", "/api/buying/lots/{lot_id}"),
        ("DELETE", "/api/buying/lots/{lot_id}"),
        ("POST", "/api/buying/payments"),
        ("GET", "/api/sales/summary"),
        ("GET", "/api/sales/summary.csv"),
        ("GET", "/api/sales/cards"),
        ("GET", "/api/sales/cards.csv"),
        ("GET", "/api/pricing/runs"),
        ("GET", "/api/pricing/runs/{run_id}"),
        ("GET", "/api/pricing/receipts/{marketplace_id}"),
        ("POST", "/api/pricing/runs/{run_id}/confirm"),
        ("POST", "/api/pricing/runs/{run_id}/discard"),
        ("POST", "/api/pricing/rollbacks"),
        ("GET", "/api/pricing/rollbacks"),
        ("GET", "/api/pricing/rollbacks/{rollback_id}"),
        ("POST", "/api/pricing/rollbacks/{rollback_id}/cancel"),
        ("GET", "/api/pricing/rules/analysis"),
        ("GET", "/api/pricing/presets"),
        ("GET", "/api/pricing/updates.csv"),
        ("GET", "/api/v1/pricing/explain/{marketplace_id}"),
        ("GET", "/api/pricing/rules"),
        ("POST", "/api/pricing/rules"),
        ("GET", "/api/pricing/rules/{rule_id}"),
        ("PATCH", "/api/pricing/rules/{rule_id}"),
        ("DELETE", "/api/pricing/rules/{rule_id}"),
        ("POST", "/api/pricing/rules/{rule_id}/publish"),
        ("POST", "/api/pricing/rules/{rule_id}/enable"),
        ("POST", "/api/pricing/rules/{rule_id}/disable"),
        ("POST", "/api/pricing/rules/reorder"),
        ("POST", "/api/pricing/presets/{preset}"),
        ("GET", "/api/pricing/sales"),
        ("POST", "/api/pricing/sales"),
        ("GET", "/api/pricing/sales/{sale_id}"),
        ("PATCH", "/api/pricing/sales/{sale_id}"),
        ("DELETE", "/api/pricing/sales/{sale_id}"),
        ("GET", "/api/pricing/settings"),
        ("PATCH", "/api/pricing/settings"),
        ("PUT", "/api/pricing/pins/{marketplace_id}"),
        ("DELETE", "/api/pricing/pins/{marketplace_id}"),
        ("POST", "/api/v1/orders"),
        ("POST", "/api/v1/order_refunds"),
        ("POST", "/api/v1/order_items"),
        ("POST", "/api/v1/orders/shipping"),
        ("POST", "/api/v1/order_feedbacks"),
        ("POST", "/api/discovery/availability"),
        ("POST", "/api/discovery/basket"),
        ("GET", "/api/buying/collections"),
        ("POST", "/api/buying/collections"),
        ("GET", "/api/buying/collections/{collection_id}"),
        ("GET", "/api/buying/collections/{collection_id}/rows"),
        ("GET", "/api/buying/collections/{collection_id}/waiting"),
        ("GET", "/api/buying/collections/{collection_id}/value"),
        ("POST", "/api/buying/collections/{collection_id}/choices"),
        ("PUT", "/api/buying/collections/{collection_id}/columns"),
        ("DELETE", "/api/buying/collections/{collection_id}"),
        ("GET", "/api/buying/rules"),
        ("POST", "/api/buying/rules"),
        ("GET", "/api/buying/rules/{rule_id}"),
        ("PATCH", "/api/buying/rules/{rule_id}"),
        ("DELETE", "/api/buying/rules/{rule_id}"),
        ("POST", "/api/buying/presets/{preset}"),
        ("POST", "/api/buying/preview"),
        ("GET", "/api/buying/rule_tests"),
        ("POST", "/api/buying/rule_tests"),
        ("DELETE", "/api/buying/rule_tests/{test_id}"),
        ("POST", "/api/buying/rule_tests/check"),
        ("GET", "/api/quick_add/products"),
        ("GET", "/api/quick_add"),
        ("POST", "/api/quick_add"),
        ("PATCH", "/api/quick_add/{entry_id}"),
        ("DELETE", "/api/quick_add/{entry_id}"),
        ("POST", "/api/quick_add/publish"),
        ("GET", "/api/buying/offers"),
        ("GET", "/api/buying/offers/{offer_id}"),
        ("GET", "/api/buying/customers"),
        ("GET", "/api/buying/customers/{customer_id}"),
        ("GET", "/api/buying/customers/{customer_id}/credit"),
        ("POST", "/api/buying/offers"),
        ("PATCH", "/api/buying/offers/{offer_id}"),
        ("DELETE", "/api/buying/offers/{offer_id}"),
        ("POST", "/api/buying/customers"),
        ("PATCH", "/api/buying/customers/{customer_id}"),
        ("GET", "/api/buying/buylist"),
        ("PATCH", "/api/buying/buylist"),
        ("POST", "/api/buying/customers/{customer_id}/credit"),
        ("POST", "/api/buying/offers/{offer_id}/link"),
        ("POST", "/api/buying/offers/{offer_id}/offer"),
        ("POST", "/api/buying/offers/{offer_id}/accept"),
        ("POST", "/api/buying/offers/{offer_id}/decline"),
        ("POST", "/api/buying/offers/{offer_id}/receive"),
        ("POST", "/api/buying/offers/{offer_id}/pay"),
        ("POST", "/api/buying/offers/{offer_id}/stock"),
        ("GET", "/api/quick_add/pending"),
        ("POST", "/api/quick_add/{entry_id}/settle"),
        ("POST", "/api/contributions"),
        ("POST", "/api/contributions/{card_id}/publish"),
        ("GET", "/api/shelves"),
        ("GET", "/api/shelves/{box}"),
        ("POST", "/api/shelves/put"),
        ("POST", "/api/shelves/put_many"),
        ("POST", "/api/shelves/rename"),
        ("POST", "/api/shelves/move"),
        ("POST", "/api/shelves/remove"),
        ("POST", "/api/session"),
        ("GET", "/api/session"),
        ("DELETE", "/api/session"),
        ("POST", "/api/invitations/{token}"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
    }


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolve(reference: str):
    node = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def test_it_is_openapi_3_1_and_every_reference_leads_somewhere():
    assert DOCUMENT["openapi"].startswith("3.1.")
    found = set(references(DOCUMENT))
    assert found
    for reference in found:
        assert reference.startswith("#/components/")
        assert resolve(reference)


def test_the_description_stays_small():
    """3.7 MB before answers and parameters were shared, and 801 kB before their names were short."""
    assert FILE.stat().st_size <= 800_000
    given = [
        json.dumps(answer, sort_keys=True)
        for operations in DOCUMENT["paths"].values()
        for operation in operations.values()
        for answer in operation["responses"].values()
        if "$ref" not in answer
    ]
    assert len(set(given)) == len(given)


def test_operation_ids_are_unique():
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids) == len(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_an_operation_is_structurally_sound(name):
    operation = OPERATIONS[name]
    known_tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert operation["description"]
    assert set(operation["tags"]) <= known_tags
    in_path = {part[1:-1] for part in name[1].split("/") if part.startswith("{")}
    parameters = operation.get("parameters", [])
    assert {parameter["name"] for parameter in parameters if parameter["in"] == "path"} == in_path
    assert len({(parameter["in"], parameter["name"]) for parameter in parameters}) == len(
        parameters
    )
    for parameter in parameters:
        assert parameter["schema"]
        assert parameter["in"] != "path" or parameter["required"] is True
    assert any(status.startswith("2") for status in operation["responses"])
    for status, answer in operation["responses"].items():
        assert len(status) == 3
        full = resolve(answer["$ref"]) if "$ref" in answer else answer
        assert full["description"]
        assert all("schema" in content for content in full.get("content", {}).values())
        for header in full["headers"].values():
            assert "$ref" in header or "schema" in header


def answer(name: tuple[str, str], status: int) -> dict:
    found = OPERATIONS[name]["responses"][str(status)]
    return resolve(found["$ref"]) if "$ref" in found else found


def codes(name: tuple[str, str], status: int) -> set[str]:
    """The codes that a status of a route may carry; a body of its own is named by its status:
    `status cooldown`.
    """
    schema = answer(name, status)["content"]["application/json"]["schema"]
    found: set[str] = set()
    for part in schema.get("anyOf", [schema]):
        if "$ref" in part:
            told = resolve(part["$ref"])["properties"]
            # A body with figures has a code, and only that one.
            one = told["code"]["const"] if "code" in told else f"status {told['status']['const']}"
            found.add(one)
        else:
            code = part["allOf"][1]["properties"]["code"]
            found |= set(code.get("enum", [code.get("const")]))
    return found


@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_every_route_tells_its_500_in_json_and_html_and_the_request_id(name):
    assert set(answer(name, 500)["content"]) == {"application/json", "text/html"}
    assert codes(name, 500) == {"internal_server_error"}
    for status in OPERATIONS[name]["responses"]:
        assert "X-Request-Id" in answer(name, int(status))["headers"]


@pytest.mark.parametrize("name", BEHIND_A_KEY, ids=" ".join)
def test_every_route_behind_a_key_tells_401_403_429_and_503_with_their_headers(name):
    assert codes(name, 401) == {"unauthorized"}
    assert "rate_limited" in codes(name, 429)
    assert "Retry-After" in answer(name, 429)["headers"]
    assert all(
        {"RateLimit-Policy", "RateLimit"} <= set(answer(name, int(status))["headers"])
        for status in OPERATIONS[name]["responses"]
        if status != "500"
    )
    assert "account_suspended" in codes(name, 403)
    assert codes(name, 503) == {"service_unavailable"}
    assert "WWW-Authenticate" in answer(name, 401)["headers"]
    assert "Retry-After" in answer(name, 503)["headers"]
    assert OPERATIONS[name]["security"] == [
        {caller: scopes(name) if caller == "token" else []} for caller in callers(name)
    ]


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - BEHIND_A_KEY.keys()), ids=" ".join)
def test_a_route_without_a_key_asks_for_none(name):
    assert not OPERATIONS[name].get("security")
    assert "401" not in OPERATIONS[name]["responses"] or codes(name, 401) == {"invalid_credentials"}


# Beside what every route behind a key may answer: the statuses and codes of the specification.
READS_JSON = {
    400: {"bad_request"},
    413: {"payload_too_large", "decompressed_too_large"},
    415: {"unsupported_media_type"},
    422: {"invalid_payload"},
}
TESTED = {
    **READS_JSON,
    409: {"rule_tests_failed"},
    422: {"invalid_payload", "invalid_rule", "invalid_query"},
}
OF_OFFER = {
    **READS_JSON,
    404: {"not_found"},
    409: {"revision_conflict", "offer_state_wrong"},
}
FOR_STRANGERS = {
    403: {"csrf_failed", "account_suspended"},
    429: {"rate_limited"},
    503: {"service_unavailable"},
}
# Writes of prices: beyond the limits a key's or a token's waits for a member.
LIMITED = {
    ("POST", "/api/cards/{card_id}/match"),
    ("POST", "/api/returns/{order_id}/restocked"),
    ("POST", "/api/buying/offers/{offer_id}/stock"),
    ("POST", "/api/pricing/reprice"),
    ("POST", "/api/pricing/rollbacks"),
    ("POST", "/api/pricing/runs/{run_id}/confirm"),
    ("POST", "/api/recommendations/{recommendation_id}/accept"),
    ("POST", "/api/pricing/reviews/accept"),
    ("POST", "/api/pricing/reviews/dismiss"),
    ("POST", "/api/pricing/reviews/snooze"),
    ("POST", "/api/waiting/{kind}/{waiting_id}"),
    ("POST", "/api/quick_add/publish"),
}
# Keys alone write these, and where a rule asks for them.
OF_LOTS = {
    ("POST", "/api/buying/lots"),
    ("POST", "/api/buying/lots/file"),
    ("PATCH", "/api/buying/lots/{lot_id}"),
    ("DELETE", "/api/buying/lots/{lot_id}"),
}
# An owner may forbid a grant what waits for nobody.
FORBIDDEN = {
    ("PATCH", "/api/buying/buylist"),
    ("POST", "/api/buying/customers/{customer_id}/credit"),
    *(
        ("POST", f"/api/buying/offers/{{offer_id}}/{step}")
        for step in ("offer", "link", "accept", "decline", "receive", "pay", "stock")
    ),
    ("POST", "/api/recommendations/{recommendation_id}/dismiss"),
    ("POST", "/api/recommendations/{recommendation_id}/snooze"),
    ("POST", "/api/pricing/runs/{run_id}/discard"),
    ("POST", "/api/pricing/rollbacks/{rollback_id}/cancel"),
    ("PATCH", "/api/pricing/rule_tests/{test_id}"),
    ("DELETE", "/api/pricing/rule_tests/{test_id}"),
}
# And a member confirms large ones.
CONFIRMED = {
    ("POST", "/api/v1/agent/activity/{activity_id}/undo"),
    ("POST", "/api/lists"),
    ("PATCH", "/api/lists/{list_id}"),
    ("DELETE", "/api/lists/{list_id}"),
    ("POST", "/api/lists/{list_id}/cards"),
    ("DELETE", "/api/lists/{list_id}/cards"),
    ("POST", "/api/pricing/rules"),
    ("PATCH", "/api/pricing/rules/{rule_id}"),
    ("DELETE", "/api/pricing/rules/{rule_id}"),
    ("POST", "/api/pricing/rules/{rule_id}/publish"),
    ("POST", "/api/pricing/rules/{rule_id}/enable"),
    ("POST", "/api/pricing/rules/{rule_id}/disable"),
    ("POST", "/api/pricing/rules/reorder"),
    ("POST", "/api/pricing/presets/{preset}"),
    ("POST", "/api/pricing/sales"),
    ("PATCH", "/api/pricing/sales/{sale_id}"),
    ("DELETE", "/api/pricing/sales/{sale_id}"),
    ("PATCH", "/api/pricing/settings"),
    ("PUT", "/api/pricing/pins/{marketplace_id}"),
    ("DELETE", "/api/pricing/pins/{marketplace_id}"),
    ("POST", "/api/pricing/pins/pin_many"),
    ("POST", "/api/pricing/pins/unpin_many"),
}
OWN_REFUSALS = {
    **{
        name: {
            400: {"bad_request"},
            413: {"payload_too_large", "decompressed_too_large"},
            415: {"unsupported_media_type"},
            422: {"invalid_payload"},
        }
        for name in WITH_JSON_BODY
    },
    **{
        name: {
            400: {"bad_request"},
            413: {"payload_too_large", "decompressed_too_large"}
            | ({"too_many_rows"} if name[1] != "/api/v1/order_feedbacks" else set()),
            415: {"unsupported_media_type"},
            422: {"invalid_json", "invalid_gzip", "invalid_payload", "empty_payload"},
        }
        for name in ORDER_UPLOADS
    },
    ("POST", "/api/v1/sync/request"): {
        400: {"bad_request"},
        402: {"status cooldown"},
        413: {"payload_too_large", "decompressed_too_large"},
        415: {"unsupported_media_type"},
        422: {"invalid_payload"},
        429: {"rate_limited", "status cooldown"},
    },
    ("POST", "/api/v1/sync/skip_wait"): {
        400: {"idempotency_key_required"},
        402: {"status insufficient_balance"},
        409: {"status mutex_held"},
        422: {"invalid_payload"},
    },
    ("POST", "/api/v1/sync/upload-request"): {
        400: {"bad_request"},
        403: {"account_suspended", "object_store_pipeline_disabled"},
        413: {"payload_too_large", "decompressed_too_large"},
        415: {"unsupported_media_type"},
        422: {"invalid_payload", "invalid_product_line"},
    },
    ("POST", "/api/v1/sync"): {
        400: {"bad_request"},
        403: {"account_suspended", "object_store_pipeline_disabled"},
        413: {"payload_too_large", "decompressed_too_large"},
        422: {
            "invalid_csv", "invalid_gzip", "invalid_product_line", "csv_processing_failed",
            "invalid_object_key", "invalid_payload",
        },
    },
    ("POST", "/api/v1/sync/debug"): {
        400: {"bad_request"},
        404: {"not_found"},
        413: {"payload_too_large", "decompressed_too_large"},
        415: {"unsupported_media_type"},
        422: {"invalid_payload"},
    },
    ("GET", "/api/v1/sync/cycles"): {422: {"invalid_payload"}},
    ("GET", "/api/v1/sync/cycles/{cycle_id}"): {404: {"not_found"}},
    ("GET", "/api/v1/sync/screenshots/{screenshot_id}"): {404: {"not_found"}},
    ("GET", "/api/buying/profit"): {422: {"invalid_payload"}},
    ("GET", "/api/buying/profit.csv"): {422: {"invalid_payload"}},
    ("GET", "/api/buying/fees"): {422: {"invalid_payload"}},
    ("GET", "/api/buying/profit/without_cost"): {422: {"invalid_payload"}},
    ("GET", "/api/buying/costs/{marketplace_id}"): {404: {"not_found"}},
    ("GET", "/api/buying/profit/orders/{order_id}"): {404: {"not_found"}},
    ("PATCH", "/api/buying/lots/{lot_id}"): {**READS_JSON, 404: {"not_found"}},
    ("DELETE", "/api/buying/lots/{lot_id}"): {404: {"not_found"}},
    ("GET", "/api/v1/uploads"): {422: {"invalid_payload"}},
    ("GET", "/api/v1/uploads/{upload_id}"): {404: {"not_found"}},
    ("GET", "/api/v1/uploads/{upload_id}/rejected.csv"): {404: {"not_found"}},
    ("POST", "/api/v1/uploads/{upload_id}/mend"): {
        404: {"not_found"}, 409: {"not_the_newest"},
        413: {"payload_too_large", "decompressed_too_large"}, 422: {"invalid_csv"},
    },
    ("POST", "/api/v1/uploads/{upload_id}/confirm"): {404: {"not_found"},
                                                      409: {"not_awaiting_review"}},
    ("POST", "/api/v1/uploads/{upload_id}/discard"): {404: {"not_found"},
                                                      409: {"not_awaiting_review"}},
    ("GET", "/downloads/{product}/{version}/{path}"): {
        404: {"not_found"}, 416: {"range_not_satisfiable"}, 429: {"rate_limited"},
        503: {"service_unavailable"},
    },
    ("POST", "/api/v1/sync/cancel"): {409: {"no_sync_in_progress"}},
    ("POST", "/api/v1/sales_report"): {
        400: {"bad_request"},
        413: {"payload_too_large", "decompressed_too_large"},
        415: {"unsupported_media_type"},
        422: {"invalid_json", "invalid_gzip", "invalid_payload"},
    },
    ("POST", "/api/v1/tasks"): READS_JSON,
    ("GET", "/api/v1/agent/activity"): {422: {"invalid_payload"}},
    ("POST", "/api/v1/agent/activity/{activity_id}/undo"): {
        403: {"account_suspended", "session_required"},
        404: {"not_found"},
        409: {"not_undoable", "changed_since"},
    },
    ("POST", "/api/v1/agent/plans"): {
        **READS_JSON,
        404: {"not_found"},
        409: {"stock_promoted_reload", "rule_tests_failed"},
        422: {
            "invalid_payload", "transition_matrix_too_large", "overlapping_rule_transitions",
            "invalid_rule", "invalid_query",
            "invalid_name", "name_taken", "list_limit_reached", "list_full",
        },
    },
    ("GET", "/api/v1/agent/plans"): {422: {"invalid_payload"}},
    ("GET", "/api/v1/agent/plans/{plan_id}"): {404: {"not_found"}},
    ("POST", "/api/v1/agent/plans/{plan_id}/confirm"): {**READS_JSON, 404: {"not_found"},
                                                        409: {"plan_not_waiting"}},
    ("POST", "/api/v1/agent/plans/{plan_id}/decline"): {404: {"not_found"},
                                                        409: {"plan_not_waiting"}},
    ("PATCH", "/api/v1/agent/plans/permissions"): READS_JSON,
    ("POST", "/api/v1/workflow/heal"): READS_JSON,
    ("GET", "/api/v1/workflow/packs/{marketplace}"): {
        404: {"not_found"}, 422: {"invalid_payload"},
    },
    ("POST", "/api/v1/workflow/corrections"): {
        **READS_JSON, 404: {"not_found"}, 409: {"correction_disabled"},
    },
    ("POST", "/api/v1/workflow/corrections/{correction_id}/failure"): {
        **READS_JSON, 404: {"not_found"},
    },
    ("GET", "/api/v1/tasks"): {422: {"invalid_payload"}},
    ("POST", "/api/v1/tasks/claim"): READS_JSON,
    ("PATCH", "/api/v1/tasks/{task_id}"): {**READS_JSON, 404: {"not_found"},
                                           409: {"claim_expired"}},
    ("GET", "/api/account"): {403: {"account_suspended", "owner_required"}},
    ("PATCH", "/api/account"): READS_JSON,
    ("GET", "/api/operator/sellers"): {422: {"invalid_payload"}},
    ("GET", "/api/operator/sellers/{seller_id}"): {404: {"not_found"}},
    ("PATCH", "/api/operator/sellers/{seller_id}"): {**READS_JSON, 404: {"not_found"}},
    ("POST", "/api/operator/backups"): {404: {"not_found"}},
    ("POST", "/api/operator/catalogs"): READS_JSON,
    ("PATCH", "/api/operator/catalogs"): READS_JSON,
    ("POST", "/api/operator/catalogs/back"): READS_JSON,
    ("POST", "/api/operator/catalogs/files"): {
        413: {"payload_too_large"}, 422: {"invalid_payload"},
    },
    ("POST", "/api/members/invitations"): READS_JSON,
    ("PATCH", "/api/members/{member_id}"): {**READS_JSON, 404: {"not_found"}},
    ("PATCH", "/api/members/me"): READS_JSON,
    ("DELETE", "/api/members/{member_id}"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("DELETE", "/api/members/{member_id}/sessions"): {404: {"not_found"}},
    ("POST", "/api/members/{member_id}/link"): {404: {"not_found"}},
    ("POST", "/api/keys"): {
        **READS_JSON,
        403: {"account_suspended", "paid_plan_required"},
        409: {"account_ending"},
    },
    ("POST", "/api/keys/{key_id}/replace"): {
        404: {"not_found"},
        409: {"account_ending"},
        422: {"invalid_payload"},
    },
    ("PATCH", "/api/keys/{key_id}"): {**READS_JSON, 404: {"not_found"}},
    ("DELETE", "/api/keys/{key_id}"): {404: {"not_found"}},
    ("DELETE", "/api/sessions/{member_session_id}"): {404: {"not_found"}},
    ("PATCH", "/api/notices/choices"): READS_JSON,
    ("POST", "/api/webhooks"): READS_JSON,
    ("PATCH", "/api/webhooks/{webhook_id}"): {**READS_JSON, 404: {"not_found"}},
    ("DELETE", "/api/webhooks/{webhook_id}"): {404: {"not_found"}},
    ("POST", "/api/webhooks/{webhook_id}/secret"): {404: {"not_found"}},
    ("POST", "/api/webhooks/{webhook_id}/test"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("GET", "/api/webhooks/{webhook_id}/deliveries"): {404: {"not_found"}},
    ("POST", "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay"): {
        404: {"not_found"}, 422: {"invalid_payload"},
    },
    ("PATCH", "/api/assistants/{assistant_id}"): {**READS_JSON, 404: {"not_found"}},
    ("DELETE", "/api/assistants/{assistant_id}"): {404: {"not_found"}},
    ("POST", "/api/account/deletion"): READS_JSON,
    ("DELETE", "/api/account/deletion"): {404: {"not_found"}},
    ("POST", "/api/passkeys"): READS_JSON,
    ("POST", "/api/passkeys/options"): {422: {"invalid_payload"}},
    ("DELETE", "/api/passkeys/{passkey_id}"): {404: {"not_found"}},
    ("GET", "/api/pricing/presets"): {422: {"invalid_query"}},
    ("GET", "/api/orders"): {422: {"invalid_payload"}},
    ("GET", "/api/cards"): {422: {"invalid_payload"}},
    ("GET", "/api/cards/complete"): {422: {"invalid_payload"}},
    ("GET", "/analytics/clearing_coverage"): {422: {"invalid_payload"}},
    ("GET", "/api/market_depth/badges"): {422: {"invalid_payload"}},
    ("GET", "/api/analytics/clearing_coverage"): {422: {"invalid_payload"}},
    ("GET", "/api/listed_value"): {422: {"invalid_payload"}},
    ("GET", "/api/movers"): {422: {"invalid_payload"}},
    ("GET", "/api/sync_result"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("GET", "/api/cards/export.csv"): {422: {"invalid_payload"}},
    ("GET", "/api/orders/{order_id}"): {404: {"not_found"}},
    ("GET", "/api/lists/{list_id}"): {404: {"not_found"}},
    ("POST", "/api/lists"): {
        **READS_JSON, 422: {"invalid_payload", "invalid_name", "name_taken", "list_limit_reached"},
    },
    ("PATCH", "/api/lists/{list_id}"): {
        **READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_name", "name_taken"},
    },
    ("DELETE", "/api/lists/{list_id}"): {404: {"not_found"}},
    ("POST", "/api/lists/{list_id}/cards"): {**READS_JSON, 404: {"not_found"},
                                             409: {"stock_promoted_reload"},
                                             422: {"invalid_payload", "list_full"}},
    ("DELETE", "/api/lists/{list_id}/cards"): {**READS_JSON, 404: {"not_found"}},
    ("GET", "/api/cards/{card_id}"): {404: {"not_found"}},
    ("POST", "/api/v1/pricing/explain/{marketplace_id}/changed"): {
        **READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_rule"},
    },
    ("GET", "/api/cards/{card_id}/behind"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("GET", "/api/cards/{card_id}/match"): {404: {"not_found"}},
    ("POST", "/api/cards/{card_id}/match"): {**READS_JSON, 404: {"not_found"}},
    ("GET", "/api/cards/{card_id}/orders"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("GET", "/api/orders/export.csv"): {422: {"invalid_payload"}},
    ("GET", "/api/v1/agent/activity/export.csv"): {422: {"invalid_payload"}},
    ("PUT", "/api/card_columns"): READS_JSON,
    ("PUT", "/api/card_columns/shop"): READS_JSON,
    ("POST", "/api/saved_searches"): {
        **READS_JSON,
        422: {
            "invalid_payload", "invalid_name", "name_taken", "invalid_query",
            "saved_search_limit_reached",
        },
    },
    ("PATCH", "/api/saved_searches/{search_id}"): {
        **READS_JSON, 404: {"not_found"},
        422: {"invalid_payload", "invalid_name", "name_taken", "invalid_query"},
    },
    ("DELETE", "/api/saved_searches/{search_id}"): {404: {"not_found"}},
    **{
        ("POST", f"/api/pricing/{what}"): {**READS_JSON,
                                           422: {"invalid_payload", "invalid_rule",
                                                 "invalid_query"}}
        for what in ("rules", "sales")
    },
    **{
        (method, f"/api/pricing/{what}"): {404: {"not_found"}}
        for what in ("rules/{rule_id}", "sales/{sale_id}")
        for method in ("GET", "DELETE")
    },
    **{
        ("PATCH", f"/api/pricing/{what}"): {
            **READS_JSON, 404: {"not_found"},
            422: {"invalid_payload", "invalid_rule", "invalid_query"},
        }
        for what in ("rules/{rule_id}", "sales/{sale_id}")
    },
    **{
        ("POST", f"/api/pricing/{what}"): {**READS_JSON,
                                           422: {"invalid_payload", "invalid_rule",
                                                 "invalid_query"}}
        for what in ("preview", "backtest")
    },
    ("POST", "/api/pricing/rules"): TESTED,
    ("PATCH", "/api/pricing/rules/{rule_id}"): {**TESTED, 404: {"not_found"}},
    ("POST", "/api/pricing/rules/reorder"): {**TESTED, 422: {"invalid_payload", "invalid_rule"}},
    **{
        (method, f"/api/pricing/{what}"): {
            404: {"not_found"}, 409: {"rule_tests_failed"}, 422: {"invalid_payload"},
        }
        for method, what in (
            ("DELETE", "rules/{rule_id}"), ("POST", "rules/{rule_id}/enable"),
            ("POST", "rules/{rule_id}/disable"), ("POST", "presets/{preset}"),
        )
    },
    ("POST", "/api/pricing/rules/{rule_id}/publish"): {
        404: {"not_found"},
        409: {"rule_tests_failed"},
        422: {"invalid_payload", "invalid_query"},
    },
    ("POST", "/api/pricing/rule_tests"): {
        **READS_JSON, 422: {"invalid_payload", "invalid_query"},
    },
    ("PATCH", "/api/pricing/rule_tests/{test_id}"): {
        **READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_query"},
    },
    ("DELETE", "/api/pricing/rule_tests/{test_id}"): {404: {"not_found"}},
    ("POST", "/api/pricing/test"): {
        **READS_JSON, 404: {"not_found"},
        422: {"invalid_payload", "invalid_rule", "invalid_query"},
    },
    **{
        ("POST", f"/api/pricing/preview/{what}"): {
            **READS_JSON, 404: {"not_found"},
            422: {"invalid_payload", "invalid_rule", "invalid_query"},
        }
        for what in ("draft", "sale")
    },
    ("GET", "/api/counts"): {422: {"invalid_payload"}},
    ("GET", "/api/counts/suggested"): {422: {"invalid_payload"}},
    ("GET", "/api/counts/{count_id}"): {404: {"not_found"}, 422: {"invalid_payload"}},
    ("POST", "/api/counts"): {**READS_JSON, 409: {"count_open"}},
    ("POST", "/api/counts/{count_id}/cancel"): {404: {"not_found"}, 409: {"count_not_open"}},
    **{
        ("POST", f"/api/counts/{{count_id}}/{what}"): {
            **READS_JSON, 404: {"not_found"}, 409: {"count_not_open"},
        }
        for what in ("seen", "settle")
    },
    ("GET", "/api/customers/{key}"): {404: {"not_found"}},
    ("PUT", "/api/customers/{key}/note"): {
        **READS_JSON, 403: {"account_suspended", "buyers_hidden"}, 404: {"not_found"},
    },
    ("GET", "/api/returns"): {422: {"invalid_payload"}},
    ("POST", "/api/returns/{order_id}/restocked"): {
        **READS_JSON,
        404: {"not_found"},
        409: {"already_restocked", "stock_promoted_reload"},
    },
    ("GET", "/api/print/sheets/{key}"): {404: {"not_found"}, 422: {"invalid_payload"}},
    **{
        ("GET", f"/api/sales/{what}"): {422: {"invalid_payload"}}
        for what in ("summary", "summary.csv", "cards", "cards.csv")
    },
    ("POST", "/api/pricing/reprice"): {409: {"status mutex_held"}},
    ("POST", "/api/pricing/reviews/accept"): {
        **READS_JSON,
        404: {"not_found"},
        409: {
            "revision_conflict", "not_eligible", "market_evidence_changed", "status mutex_held",
        },
    },
    ("POST", "/api/pricing/reviews/dismiss"): {
        **READS_JSON, 404: {"not_found"}, 409: {"revision_conflict"},
    },
    ("POST", "/api/pricing/reviews/snooze"): {
        **READS_JSON, 404: {"not_found"}, 409: {"revision_conflict"},
    },
    ("GET", "/api/waiting"): {422: {"invalid_payload"}},
    ("POST", "/api/waiting/{kind}/{waiting_id}"): {
        **READS_JSON,
        403: {"account_suspended", "session_required", "key_required"},
        404: {"not_found"},
        409: {
            "revision_conflict", "not_eligible", "market_evidence_changed", "status mutex_held",
        },
    },
    ("POST", "/api/recommendations/shown"): {
        **READS_JSON, 422: {"invalid_payload", "too_many_observations"},
    },
    ("POST", "/api/recommendations/{recommendation_id}/accept"): {
        **READS_JSON,
        404: {"not_found"},
        409: {
            "revision_conflict", "not_eligible", "market_evidence_changed", "status mutex_held",
        },
    },
    ("POST", "/api/recommendations/{recommendation_id}/dismiss"): {
        **READS_JSON, 404: {"not_found"}, 409: {"revision_conflict"},
    },
    ("POST", "/api/recommendations/{recommendation_id}/snooze"): {
        **READS_JSON, 404: {"not_found"}, 409: {"revision_conflict"},
    },
    ("POST", "/api/v1/repricing_events"): READS_JSON,
    ("POST", "/api/v1/repricing_events/failure"): READS_JSON,
    ("POST", "/api/pricing/rollbacks"): {
        **READS_JSON,
        404: {"not_found"},
        409: {"status mutex_held", "rollback_open"},
    },
    ("GET", "/api/pricing/rollbacks/{rollback_id}"): {404: {"not_found"}},
    ("POST",
     "/api/pricing/rollbacks/{rollback_id}/cancel"): {404: {"not_found"}, 409: {"not_cancellable"}},
    ("GET", "/api/pricing/runs/{run_id}"): {404: {"not_found"}},
    **{
        ("POST", f"/api/pricing/runs/{{run_id}}/{what}"): {404: {"not_found"},
                                                           409: {"not_awaiting_review"}}
        for what in ("confirm", "discard")
    },
    ("GET", "/api/v1/pricing/explain/{marketplace_id}"): {404: {"not_found"}},
    ("GET", "/api/pricing/receipts/{marketplace_id}"): {
        404: {"not_found"}, 422: {"invalid_payload"},
    },
    ("PATCH", "/api/pricing/settings"): {**READS_JSON, 422: {"invalid_payload", "invalid_rule"}},
    ("PUT", "/api/pricing/pins/{marketplace_id}"): {
        **READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_rule"},
    },
    ("DELETE", "/api/pricing/pins/{marketplace_id}"): {404: {"not_found"}},
    ("POST", "/api/pull_sessions"): {
        400: {"bad_request"},
        409: {"pull_session_open"},
        413: {"payload_too_large", "decompressed_too_large"},
        415: {"unsupported_media_type"},
        422: {"invalid_payload"},
    },
    ("GET", "/api/pull_sessions/{session_id}"): {404: {"not_found"}},
    **{
        ("POST",
         f"/api/pull_sessions/{{session_id}}/{what}"): {404: {"not_found"},
                                                        409: {"pull_session_not_open"}}
        for what in (
            "complete", "cancel", "orders/{order_id}/pulled", "orders/{order_id}/defer",
            "orders/{order_id}/unassign",
        )
    },
    **{
        ("POST", f"/api/orders/{{order_id}}/{what}"): {404: {"not_found"}}
        for what in ("dismiss", "undismiss", "unmark_shipped", "unmark_pulled")
    },
    ("POST", "/api/orders/mark_shipped"): READS_JSON,
    ("POST", "/api/orders/{order_id}/mark_shipped"): {
        404: {"not_found"}, 409: {"card_missing"}, 422: {"invalid_payload"},
    },
    ("GET", "/api/missing_cards"): {422: {"invalid_payload"}},
    ("POST", "/api/orders/{order_id}/missing/{item_id}"): {
        **READS_JSON, 404: {"not_found"}, 409: {"missing_settled"},
    },
    ("POST", "/api/pull_links"): {**READS_JSON, 404: {"not_found"},
                                  409: {"pull_session_not_open"}},
    ("GET", "/api/pull_links"): {422: {"invalid_payload"}},
    ("DELETE", "/api/pull_links/{link_id}"): {404: {"not_found"}},
    ("GET", "/api/shelves/{box}"): {404: {"not_found"}, 422: {"invalid_payload"}},
    **{("POST", f"/api/shelves/{what}"): {**READS_JSON, 404: {"not_found"},
                                          409: {"stock_promoted_reload"}}
       for what in ("put", "put_many", "move", "remove")},
    ("POST", "/api/shelves/rename"): {**READS_JSON, 404: {"not_found"}},
    ("POST", "/api/contributions"): READS_JSON,
    **{
        ("POST", f"/api/discovery/{what}"): {
            **READS_JSON, 422: {*READS_JSON[422], "name_too_short", "too_many_references"},
        }
        for what in ("availability", "basket")
    },
    ("GET", "/api/buying/collections"): {422: {"invalid_payload"}},
    ("POST", "/api/buying/collections"): {
        413: {"payload_too_large", "decompressed_too_large", "too_many_rows"},
        422: {"invalid_payload", "invalid_csv", "invalid_gzip"},
    },
    **{
        ("GET", f"/api/buying/collections/{{collection_id}}{what}"): {
            404: {"not_found"}, 422: {"invalid_payload"},
        }
        for what in ("", "/rows", "/waiting", "/value")
    },
    ("DELETE", "/api/buying/collections/{collection_id}"): {404: {"not_found"}},
    ("POST", "/api/buying/collections/{collection_id}/choices"): {
        **READS_JSON, 404: {"not_found"},
    },
    ("PUT", "/api/buying/collections/{collection_id}/columns"): {
        **READS_JSON, 404: {"not_found"},
    },
    ("POST", "/api/buying/preview"): {**READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_rule", "invalid_query"}},
    ("POST", "/api/buying/rules"): {**READS_JSON, 422: {"invalid_payload", "invalid_rule", "invalid_query"}},
    ("GET", "/api/buying/rules/{rule_id}"): {404: {"not_found"}},
    ("PATCH", "/api/buying/rules/{rule_id}"): {
        **READS_JSON, 404: {"not_found"}, 422: {"invalid_payload", "invalid_rule", "invalid_query"},
    },
    ("DELETE", "/api/buying/rules/{rule_id}"): {404: {"not_found"}},
    ("POST", "/api/buying/presets/{preset}"): {404: {"not_found"}},
    ("POST", "/api/buying/rule_tests"): {
        **READS_JSON, 422: {"invalid_payload", "invalid_query"},
    },
    ("DELETE", "/api/buying/rule_tests/{test_id}"): {404: {"not_found"}},
    ("GET", "/api/quick_add/products"): {422: {"invalid_payload"}},
    ("GET", "/api/quick_add"): {422: {"invalid_payload"}},
    ("GET", "/api/buying/offers"): {422: {"invalid_payload"}},
    ("POST", "/api/buying/offers"): {**READS_JSON, 404: {"not_found"}},
    ("GET", "/api/buying/offers/{offer_id}"): {404: {"not_found"}},
    ("PATCH", "/api/buying/offers/{offer_id}"): {
        **OF_OFFER,
        403: {"account_suspended", "buyers_hidden", "owner_required", "refused_by_grant"},
    },
    ("DELETE", "/api/buying/offers/{offer_id}"): {404: {"not_found"}, 409: {"offer_state_wrong"}},
    ("POST", "/api/buying/offers/{offer_id}/link"): {
        404: {"not_found"}, 409: {"offer_state_wrong"},
    },
    **{("POST", f"/api/buying/offers/{{offer_id}}/{step}"): OF_OFFER
       for step in ("offer", "accept", "decline", "receive", "pay", "stock")},
    ("GET", "/api/buying/customers"): {
        403: {"account_suspended", "buyers_hidden"}, 422: {"invalid_payload"},
    },
    ("POST", "/api/buying/customers"): READS_JSON,
    ("GET", "/api/buying/customers/{customer_id}"): {404: {"not_found"}},
    ("PATCH", "/api/buying/customers/{customer_id}"): {
        **READS_JSON, 403: {"account_suspended", "buyers_hidden"},
        404: {"not_found"},
    },
    ("GET", "/api/buying/customers/{customer_id}/credit"): {404: {"not_found"}},
    ("POST", "/api/buying/customers/{customer_id}/credit"): {
        **READS_JSON, 404: {"not_found"}, 409: {"store_credit_too_low"},
    },
    ("PATCH", "/api/buying/buylist"): READS_JSON,
    ("POST", "/api/quick_add"): {
        **READS_JSON, 409: {"stock_promoted_reload"}, 422: {"invalid_payload", "list_full"},
    },
    ("PATCH", "/api/quick_add/{entry_id}"): {**READS_JSON, 404: {"not_found"},
                                             409: {"not_a_draft"}},
    ("DELETE", "/api/quick_add/{entry_id}"): {404: {"not_found"}, 409: {"not_a_draft"}},
    ("POST", "/api/quick_add/publish"): {**READS_JSON, 404: {"not_found"}, 409: {"not_a_draft"}},
    ("POST", "/api/quick_add/{entry_id}/settle"): {
        **READS_JSON, 404: {"not_found"}, 409: {"not_pending", "listing_in_hand"},
    },
    ("POST", "/api/contributions/{card_id}/publish"): {
        404: {"not_found"}, 409: {"stock_promoted_reload"}, 422: {"list_full"},
    },
    ("POST", "/api/session"): {
        **READS_JSON, **FOR_STRANGERS, 401: {"invalid_credentials"},
    },
    ("POST", "/api/session/passkey"): {
        **READS_JSON, **FOR_STRANGERS, 401: {"invalid_credentials"},
    },
    ("POST", "/api/session/passkey/options"): {
        **FOR_STRANGERS, 403: {"csrf_failed"}, 422: {"invalid_payload"},
    },
    ("POST", "/api/invitations/{token}"): {**READS_JSON, **FOR_STRANGERS, 404: {"not_found"}},
    ("PUT", "/objects/{key}"): {
        400: {"bad_request"},
        403: {"invalid_signature", "url_expired"},
        404: {"not_found"},
        409: {"already_used"},
        413: {"payload_too_large"},
        429: {"rate_limited"},
        503: {"service_unavailable"},
    },
}  # fmt: skip


def typed(parameter: dict) -> bool:
    """A value of a query or a header may not fit what it must be."""
    schema = parameter["schema"]
    forms = [form for form in schema.get("oneOf", [schema]) if form != {"type": "null"}]
    return parameter["in"] != "path" and any(
        form.keys() - {"default"} != {"type"} or form["type"] != "string" for form in forms
    )


@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_a_route_tells_exactly_the_refusals_that_it_can_give(name):
    expected = (
        {
            401: {"unauthorized"},
            403: {"account_suspended"},
            429: {"rate_limited"},
            503: {"service_unavailable"},
        }
        if name in BEHIND_A_KEY
        else {}
    )
    expected |= OWN_REFUSALS.get(name, {})
    if name in LIMITED | CONFIRMED | OF_LOTS:
        expected[409] = expected.get(409, set()) | {"needs_review"}
    if name in LIMITED | CONFIRMED | FORBIDDEN:
        expected[403] |= {"refused_by_grant"}
    if name in CONFIRMED or name == ("POST", "/api/v1/agent/plans"):
        expected[422] = expected.get(422, set()) | {"confirmation_needed"}
    if any(map(typed, OPERATIONS[name].get("parameters", []))):
        expected[422] = expected.get(422, set()) | {"invalid_payload"}
    if name in BEHIND_A_KEY:
        expected[403] |= (
            {"csrf_failed"} if "session" in callers(name) and name[0] != "GET" else set()
        )
        who, by = who_and_by(name)
        for_owners = who == "owner" or " ".join(name) in MORE_FOR_OWNERS
        expected[403] |= {"owner_required"} if for_owners else set()
        expected[403] |= {"operator_required"} if who == "operator" else set()
        expected[403] |= {"key_required"} if by == "key" else set()
        of_tokens = {"insufficient_scope", "paid_plan_required"}
        expected[403] |= of_tokens if "token" in callers(name) else set()
        expected[403] |= {"session_required"} if by == "session" else set()
    told = {
        int(status)
        for status in OPERATIONS[name]["responses"]
        if int(status) >= 400 and int(status) != 500
    }
    if name == ("GET", "/readyz"):
        assert told == {422, 503}
        return
    assert {status: codes(name, status) for status in told} == expected


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "{" in name[1]], ids=" ".join)
def test_an_address_with_a_part_that_is_none_answers_404(name):
    """An ID of an address that is no number is no address."""
    assert "404" in OPERATIONS[name]["responses"]


def test_an_inventory_report_is_a_report_too():
    """Not `oneOf`: it fits both."""
    for name in (
        ("GET", "/api/v1/uploads/{upload_id}"),
        ("POST", "/api/v1/uploads/{upload_id}/confirm"),
    ):
        schema = answer(name, 200)["content"]["application/json"]["schema"]
        assert list(schema) == ["anyOf"]
        assert [part["$ref"].rpartition("/")[2] for part in schema["anyOf"]] == [
            "InventoryReport",
            "UploadReport",
        ]


def test_every_code_has_one_problem_class_and_appears():
    assert len(PROBLEMS) > 15
    own = [kind for kind in PROBLEMS if issubclass(kind, errors.WithStatus)]
    by_code = {kind.code: kind for kind in PROBLEMS if kind not in own}
    assert len(by_code) + len(own) == len(PROBLEMS)
    told = {code for name in OPERATIONS for status in OPERATIONS[name]["responses"] if int(status) >= 400
            and name != ("GET", "/readyz") for code in codes(name, int(status))}  # fmt: skip
    told |= set(DOCUMENT["components"]["responses"]["MethodNotAllowed"]["content"]["application/json"]["schema"]["allOf"][1][
        "properties"]["code"]["enum"])  # fmt: skip
    # The document leaves out the routes that phones ask by their links, the assistants' one, and
    # the pages of an installation without a shop; it says once what a public demo refuses.
    assert "403 `public_demo`" in DOCUMENT["info"]["description"]
    by_code.pop("public_demo")
    by_code.pop("restore_under_way")
    by_code.pop("pull_link_ended")
    by_code.pop("offer_link_ended")
    by_code.pop("misdirected_request")
    assert told == by_code.keys() | {"internal_server_error"} | {
        f"status {kind.code}" for kind in own
    }
    for kind in PROBLEMS:
        assert 400 <= kind.status < 600
        assert kind.__doc__


def test_what_belongs_to_no_route_is_told_as_a_component():
    shared = DOCUMENT["components"]["responses"]
    assert set(shared) >= {"InternalError", "UnknownRoute", "MethodNotAllowed"}
    assert "Allow" in shared["MethodNotAllowed"]["headers"]
    assert "Vary" in shared["UnknownRoute"]["headers"]
    internal = DOCUMENT["components"]["schemas"]["InternalError"]
    assert set(internal["required"]) == {"error", "code", "status", "request_id"}
    assert set(DOCUMENT["components"]["schemas"]["ErrorBody"]["required"]) == {"error", "code"}


def test_a_refusal_that_says_when_to_try_again_tells_its_header():
    assert "Retry-After" in answer(("POST", "/api/v1/sync/request"), 429)["headers"]
    assert "Retry-After" in answer(("POST", "/api/v1/sync/skip_wait"), 409)["headers"]
    assert (
        "Retry-After" not in answer(("POST", "/api/v1/uploads/{upload_id}/confirm"), 409)["headers"]
    )


def test_a_body_of_its_own_tells_exactly_its_fields():
    """The specification's table of cooldown and credit responses."""
    schemas = DOCUMENT["components"]["schemas"]
    told = {
        name: set(schemas[name]["required"])
        for name in schemas
        if name.endswith("Body") and name != "ErrorBody"
    }
    assert told["MeteredCooldownBody"] == {
        "status",
        "cooldown_remaining_seconds",
        "balance",
        "top_up_path",
    }
    assert told["CooldownBody"] == {"status", "cooldown_remaining_seconds"}
    assert told["InsufficientBalanceBody"] == {"status", "balance", "top_up_path"}
    assert told["MutexHeldBody"] == {"status", "retry_after_seconds"}
    assert schemas["SkipWait"]["required"] == ["status"]


@pytest.mark.parametrize("name", sorted(WITH_JSON_BODY), ids=" ".join)
def test_a_json_body_is_told_plain_and_for_all_that_it_may_be_gzipped(name):
    assert "`application/gzip`" in DOCUMENT["info"]["description"]
    body = OPERATIONS[name]["requestBody"]
    assert set(body["content"]) == {"application/json"}
    assert body["required"] is (
        name[1]
        in (
            "/api/v1/sync/log",
            "/api/v1/sync/debug",
            "/api/session",
            "/api/invitations/{token}",
            "/api/counts",
            "/api/counts/{count_id}/seen",
            "/api/session/passkey",
        )
        or (
            name[1].startswith(
                (
                    "/api/pull_links",
                    "/api/shelves",
                    "/api/customers",
                    "/api/buying",
                    "/api/lists",
                    "/api/saved_searches",
                    "/api/card_columns",
                    "/api/cards",
                    "/api/pricing/pins",
                    "/api/contributions",
                    "/api/quick_add",
                    "/api/buying",
                    "/api/discovery",
                    "/api/members",
                    "/api/operator",
                    "/api/keys",
                    "/api/account/deletion",
                    "/api/passkeys",
                )
            )
            and name[0] != "DELETE"
        )
    )


def test_the_inventory_upload_tells_both_of_its_forms():
    body = OPERATIONS["POST", "/api/v1/sync"]["requestBody"]
    assert body["required"] is True
    assert set(body["content"]) == {
        "application/gzip",
        "application/octet-stream",
        "text/csv",
        "application/json",
    }
    key_form = body["content"]["application/json"]["schema"]
    assert key_form["required"] == ["key"]
    assert set(key_form["properties"]) == {"key", "product_line", "sync_cycle_id", "exported_at"}
    headers = {parameter["name"] for parameter in OPERATIONS["POST", "/api/v1/sync"]["parameters"]}
    assert "X-Product-Line" in headers


QUERIES = {
    ("GET", "/api/cards"): (
        "search game product_line status selected_ids sort direction page per_page"
    ),
    ("GET", "/api/orders"): "page per_page sort direction status search date_from date_to"
                            " product_line refund unfeedbacked "
    "shipping_type ship_mark pull_session state items_per_order items",
    ("GET", "/api/cards/complete"): "text",
    ("GET", "/analytics/clearing_coverage"): "marketplace_id card_id",
    ("GET", "/api/analytics/clearing_coverage"): "marketplace_id card_id",
    ("GET", "/api/market_depth/holds"): "page per_page",
    ("GET", "/api/market_depth/badges"): "marketplace_id card_id",
    ("GET", "/api/recommendations"): "page per_page",
    ("GET", "/api/pricing/reviews"): "page per_page",
    ("GET", "/api/waiting"): "kind page per_page",
    ("GET", "/api/cards/{card_id}/behind"): (
        "search game product_line status selected_ids sort direction per_page"
    ),
    ("GET", "/api/cards/export.csv"): "search game product_line status selected_ids",
    ("GET", "/api/customers"): "page per_page",
    ("GET", "/api/orders/export.csv"): "status search date_from date_to product_line"
                                       " refund unfeedbacked shipping_type ship_mark pull_session state",
    ("DELETE", "/api/lists/{list_id}/cards"): (
        "confirm marketplace_ids card_ids search game product_line status selected_ids"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES, ids=" ".join)
def test_a_route_that_reads_its_query_itself_tells_its_parameters(name):
    parameters = OPERATIONS[name]["parameters"]
    assert [each["name"] for each in parameters if each["in"] == "query"] == QUERIES[name].split()
    assert not any(each.get("required") for each in parameters if each["in"] == "query")


def test_ids_of_a_selection_are_told_as_integers():
    for name in ("Selection", "PutMany"):
        told, _ = DOCUMENT["components"]["schemas"][name]["properties"]["card_ids"]["oneOf"]
        assert (told["type"], told["items"]) == ("array", {"type": "integer"})


@pytest.mark.parametrize("name", sorted(ORDER_UPLOADS), ids=" ".join)
def test_an_order_upload_tells_its_rows_plain_and_gzipped(name):
    body = OPERATIONS[name]["requestBody"]
    assert body["required"] is True
    assert set(body["content"]) == {"application/json"}
    assert "`application/gzip`" in body["description"]
    rows = body["content"]["application/json"]["schema"]
    assert rows["type"] == "array"
    assert "order_number" in rows["items"]["required"]
    assert set(rows["items"]["required"]) <= set(rows["items"]["properties"])


def test_the_presigned_put_tells_its_binary_body():
    body = OPERATIONS["PUT", "/objects/{key}"]["requestBody"]
    assert body["required"] is True
    assert set(body["content"]) == {"application/gzip", "text/csv"}


def test_the_export_tells_its_csv_its_headers_and_its_304():
    name = ("GET", "/api/v1/export/price-updates")
    ok, unchanged = answer(name, 200), answer(name, 304)
    assert set(ok["content"]) == {"text/csv"}
    assert {"ETag", "X-Price-Export-Empty-Reason", "Cache-Control", "Vary"} <= set(ok["headers"])
    assert "ETag" in unchanged["headers"]
    assert "X-Price-Export-Empty-Reason" not in unchanged["headers"]
    assert "content" not in unchanged
    assert "If-None-Match" in {parameter["name"] for parameter in OPERATIONS[name]["parameters"]}


def test_the_empty_answers_are_told_as_empty():
    assert "content" not in answer(("POST", "/api/v1/sync/log"), 201)
    assert "content" not in answer(("PUT", "/objects/{key}"), 200)


def fits(value, schema) -> bool:
    """Enough of JSON Schema for the answers that we give: types, objects, arrays, unions,
    references.
    """
    if "$ref" in schema:
        return fits(value, resolve(schema["$ref"]))
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return any(fits(value, part) for part in schema[union])
    kinds = {
        "string": str,
        "integer": int,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    kind = schema.get("type")
    if kind and (
        not isinstance(value, kinds[kind]) or (kind == "integer" and isinstance(value, bool))
    ):
        return False
    if kind == "array":
        return all(fits(item, schema.get("items", {})) for item in value)
    if kind == "object" and "properties" in schema:
        told = schema["properties"]
        missing = set(schema.get("required", [])) - value.keys()
        return (
            not missing
            and value.keys() <= told.keys()
            and all(fits(item, told[key]) for key, item in value.items())
        )
    return True


async def test_real_answers_fit_what_is_told(a_seller, service):
    seller = await a_seller()
    report = await seller.import_csv(
        a_csv(a_row(1), a_row(2, price="broken"), a_row(3, quantity=-1))
    )
    sent = await seller.send("/orders", [{"order_number": "A-1", "total_amt": "broken"}])
    feedback = await seller.send("/order_feedbacks", [{"order_number": "A-1", "rating": 5}])
    answers = {
        ("POST", "/api/v1/orders"): sent,
        ("POST", "/api/v1/order_feedbacks"): feedback,
        ("POST", "/api/v1/heartbeat"): await seller.post("/api/v1/heartbeat"),
        ("GET", "/api/v1/sync/pending"): await seller.get("/api/v1/sync/pending"),
        ("GET", "/api/v1/status"): await seller.get("/api/v1/status"),
        ("POST", "/api/v1/sync/request"): await seller.post("/api/v1/sync/request"),
        ("POST", "/api/v1/sync/skip_wait"): await seller.post(
            "/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": "a"}
        ),
        ("POST", "/api/v1/sync/upload-request"): await seller.post("/api/v1/sync/upload-request"),
        ("GET", "/api/v1/uploads/{upload_id}"): await seller.get(f"/api/v1/uploads/{report['id']}"),
        ("POST", "/api/v1/sync"): await seller.upload(a_csv(a_row())),
        ("GET", "/readyz"): await seller.get("/readyz"),
    }
    orders_report = await seller.get(f"/api/v1/uploads/{sent.json()['upload_id']}")
    assert orders_report.json()["rejected"]
    for name, given in [*answers.items(), (("GET", "/api/v1/uploads/{upload_id}"), orders_report)]:
        [content] = answer(name, given.status_code)["content"].values()
        assert fits(given.json(), content["schema"]), (name, given.text)
    assert not fits({"status": 1}, {"$ref": "#/components/schemas/Health"})


# The names of fields that the specification's interface.md and decisions.md explain.
EXPLAINED = """
error code status request_id name category_id update_available force_update latest_version
download_url signature sha256 release release_signature min_from product_lines has_pending_tasks
sync_mode upload_approved action reason sync_requested first_sync kind plan steps skipped
last_succeeded_at freshness_seconds sync_in_progress last_sync_at agent_last_seen_at phase
phase_progress done total cooldown_remaining_seconds balance top_up_path transaction_id
retry_after_seconds full_history upload_id upload_url key expires_at exported_at

order_number buyer_name order_date product_amt shipping_amt total_amt refund_type refund_origin
refund_amt refund_reason refund_note product_name product_line condition set_name rarity quantity
sku_id main_photo_url shipping_method city state postal_code tracking_number item_count
product_weight rating comment date_from date_to report gross_sales order_count product_amount
total_fees shipping_amount total_refund_amount refunded_orders refunded_fees adjustments
net_sales_minus_fees net_sales month empty gaps count updated sync_cycle_id duration_ms
agent_version platform started_at step_name page_url screenshot captured_at

id order_placed_at shipping_type shipped_marked_at marked_shipped_pending pull_dismissed_at items
items_truncated items_total_count feedback_rating feedback_comment unit_price line_total orders page
per_page total_pages status_counts pull_sessions order_ids opened_at completed_at pulled_count
review_count changed needs_review customers first_order_at last_order_at lifetime_total repeat_rate
stream received_at finished_at rows applied duplicates rejected_count rejected row line column
message matched provisional ambiguous gone

slug position card_count active_count gone_count query member add_cards_url lists max_cards_per_list
list added requested truncated removed deleted marketplace_ids card_ids selected_ids search
marketplace_id product_id marketplace_product_id card_id number game condition_label printing
language price target_price market_price low_price low_price_with_shipping direct_low custom
locations box slot location_code unshelved_quantity updated_at created_at history observed_at
query_errors offset contribution shared boxes slots cards drift start_slot per_slot from to

scope scope_note results set finish candidates owned_by_caller availability min_price total_quantity
as_of sellers store_name buy_url fallback nearby_printings in_network_unexposed parcels postage
postage_estimated index greedy_total gap unavailable any_printing max_sellers fewest_parcels

matching_rules governing_rule blockers historical_breakdown inputs currency
current_price computed_at card outcome priority recommendations proposed_price expected_value
confidence revision evidence liquidation account observations recorded holds price_options
buy_out_detected_at gate_verdict condition_listings passed sales_30d fetched_at aggressive_price
undercut_up_bp hard_floor repricing_scope shipping_adder rules selects governs never_matches
shadowed_by broken overlaps unmatched direct_minimum direct_program default_rule_enabled
minimum_move attribution_logging max_age_hours fee_level run_id trigger priced held blocked up down
unchanged listed_value_before listed_value_after largest histogram from_bp to_bp days date
listed_value sold sold_at sold_price asked_price summary rule_id since dry_run diff
velocity_boost_enabled warnings ids

sync_interval_minutes quiet_hours time_zone auto_sync_paused automatic_pricing_paused
planner_opt_in write_consent tracking_threshold network_consent network_published enabled
postage_steps listing_url_template staff_see_revenue loss_budget csrf_token seller email role
invite_url password past_due suspended trial_ends_at tasks payload attempt claimed_at claim_token
claim_expires_at kinds limit capabilities result retryable imported_at file_sha256 row_count
old_price new_price step workflow selector dom_snippet correction heal_id correction_id verified
plan_key actions op changes plan_id risk cards_affected listed_value_change confirm_url proposal_id
confirm listed activity actor
"""
# How much of all fields is described, whoever explains them.
LEAST_DESCRIBED = 0.95


def described_fields() -> list[tuple[str, str, bool]]:
    """Return every field with where it is and whether it is described. What only narrows the fields
    of another schema, beside which it is, needs no words.
    """
    found = []

    def look(part, where: str) -> None:
        if isinstance(part, list):
            for one in part:
                look(one, where)
        if not isinstance(part, dict):
            return
        narrows = any("$ref" in one for one in part.get("allOf", ()))
        for name, one in part.get("properties", {}).items():
            found.append((name, where, bool(one.get("description"))))
            look(one, f"{where}.{name}")
        for name, one in part.items():
            if name not in ("properties", "example", "examples") and not (
                narrows and name == "allOf"
            ):
                look(one, f"{where}/{name}")

    for name, schema in DOCUMENT["components"]["schemas"].items():
        look(schema, name)
    for name, operation in OPERATIONS.items():
        look(operation, " ".join(name))
    return found


def test_a_field_that_the_specification_explains_has_its_sentence_wherever_it_is():
    found, explained = described_fields(), set(EXPLAINED.split())
    assert explained <= {name for name, _, _ in found}
    bare = [f"{where}.{name}" for name, where, said in found if name in explained and not said]
    assert bare == []


def test_nearly_all_fields_are_described():
    found = described_fields()
    assert len(found) > 2000
    assert sum(said for _, _, said in found) / len(found) >= LEAST_DESCRIBED

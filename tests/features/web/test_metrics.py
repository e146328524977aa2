"""Prometheus metrics: what was asked is counted by route template, and no id ever becomes a
label.
"""

from prometheus_client import REGISTRY

from builders import a_csv, a_row


def count(method: str, route: str, status: int) -> float:
    labels = {"method": method, "route": route, "status": str(status)}
    return REGISTRY.get_sample_value("cardsync_requests_total", labels) or 0


async def test_a_request_is_counted_once_under_its_route_and_status(a_seller):
    seller = await a_seller()
    before = count("GET", "/api/v1/status", 200)
    await seller.get("/api/v1/status?seen=1")
    assert count("GET", "/api/v1/status", 200) == before + 1


async def test_a_refusal_is_counted_under_its_status(service):
    before = count("POST", "/api/v1/heartbeat", 401)
    async with service.client() as http:
        await http.post("/api/v1/heartbeat")
    assert count("POST", "/api/v1/heartbeat", 401) == before + 1


async def test_unknown_addresses_share_one_label(service):
    before = count("GET", "unmatched", 404)
    async with service.client() as http:
        for n in range(3):
            await http.get(f"/no-such-address-{n}")
    assert count("GET", "unmatched", 404) == before + 3


async def test_an_invented_method_is_other(service):
    async with service.client() as http:
        await http.request("FLUMMOX", "/healthz")
    assert "FLUMMOX" not in all_labels()


async def test_the_time_of_a_request_is_observed(a_seller):
    seller = await a_seller()
    labels = {"method": "POST", "route": "/api/v1/heartbeat"}
    before = REGISTRY.get_sample_value("cardsync_request_seconds_count", labels) or 0
    await seller.post("/api/v1/heartbeat")
    assert REGISTRY.get_sample_value("cardsync_request_seconds_count", labels) == before + 1


async def test_a_finished_upload_is_counted_by_its_end(a_seller, service):
    seller = await a_seller()
    # Jobs that other sellers left in the queue are done first, or they would count here.
    await service.run_jobs()
    before = REGISTRY.get_sample_value("cardsync_uploads_finished_total", {"state": "done"}) or 0
    await seller.import_csv(a_csv(a_row()))
    assert (
        REGISTRY.get_sample_value("cardsync_uploads_finished_total", {"state": "done"})
        == before + 1
    )


def all_labels() -> set[str]:
    return {
        value
        for metric in REGISTRY.collect()
        if metric.name.startswith("cardsync_")
        for sample in metric.samples
        for value in sample.labels.values()
    }


async def test_no_id_key_or_address_is_a_label(a_seller, service):
    seller = await a_seller()
    report = await seller.import_csv(a_csv(a_row()))
    await seller.get(f"/api/v1/uploads/{report['id']}")
    slot = (await seller.post("/api/v1/sync/upload-request")).json()
    async with service.client() as http:
        await http.put(slot["upload_url"], content=a_csv(a_row()))
    labels = all_labels()
    assert "/api/v1/uploads/{upload_id}" in labels
    assert "/objects/{key}" in labels
    for secret in (
        slot["key"],
        f"u{seller.id}/",
        seller.api_key,
        seller.email,
        f"/uploads/{report['id']}",
    ):
        assert not any(secret in label for label in labels)

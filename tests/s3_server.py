"""A real S3 server for the tests: SeaweedFS, from PyPI."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import obstore

# Tests of the folder: with a bucket (`.ci/stock s3`) its server answers downloads and puts, and there
# is no folder to look into or to break.
OF_THE_FOLDER = {
    "test_a_heartbeat_tells_a_newer_version_with_everything_to_verify_it",
    "test_a_download_is_public_and_may_be_kept_for_ever",
    "test_head_tells_size_and_hash",
    "test_a_range",
    "test_a_range_that_is_none_gets_the_whole",
    "test_a_range_behind_the_end",
    "test_a_range_of_something_else_gets_the_whole",
    "test_unchanged_is_304",
    "test_bytes_that_are_gone_are_not_found_and_no_crash",
    "test_an_upload_that_breaks_off_is_not_accepted",
    "test_an_expired_url_takes_nothing",
    "test_a_used_url_takes_nothing_more",
    "test_a_step_of_tidying_that_fails_stops_no_later_one",
    "test_a_file_that_can_never_be_read_is_not_tried_for_ever",
    "test_an_upload_request_gives_a_url_a_key_and_when_it_expires",
    "test_a_url_takes_one_upload",
    "test_of_concurrent_puts_one_wins",
    "test_a_url_expires_after_ten_minutes",
    "test_a_changed_url_is_invalid_signature",
    "test_a_put_over_the_limit_is_payload_too_large_and_does_not_use_the_url_up",
    "test_accepted_bytes_no_longer_depend_on_the_object",
    "test_public_downloads_and_forged_upload_addresses_are_limited_by_address",
    "test_rows_of_a_killed_worker_are_written_into_another_file",
    "test_a_late_worker_touches_no_file_of_another",
    "test_a_bucket_that_is_away_ends_no_tidying",
    "test_rows_stay_where_a_file_does_not_read_back",
    "test_an_outage_of_the_store_costs_time_and_never_the_upload",
}

PROGRAM = Path(sys.executable).with_name("weed")
KEY, SECRET = "the-tests-key", "the-tests-secret"
_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
          "filer.port.grpc", "s3.port", "s3.port.grpc")  # fmt: skip


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment by which a program finds the server. A bucket is made when something
    is put into it.
    """
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config, data = folder / "s3.json", folder / "s3"
    config.write_text(json.dumps({"identities": [identity]}))
    data.mkdir()
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    options = [f"-{name}={port}" for name, port in ports.items()]
    options += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={config}"]
    options += [f"-dir={data}", "-master.volumeSizeLimitMB=64", "-volume.max=400"]
    # These have fixed ports, and another server of the tests may run.
    options += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    with (folder / "weed.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, "server", *options], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{ports['s3.port']}"
    try:
        _wait(url, process)
        yield {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }
    finally:
        process.kill()
        process.wait()


def own_bucket(name: str) -> str | None:
    """The URL of a bucket of this process alone, because its sellers have the numbers of others';
    None without a server (`.ci/stock s3`).
    """
    if "CARDSYNC_TEST_BUCKET_URL" not in os.environ:
        return None
    url = f"{os.environ['CARDSYNC_TEST_BUCKET_URL']}-{name}-{os.getpid()}"
    make_bucket(url)
    return url


def make_bucket(url: str) -> None:
    """Make the bucket of a URL, on the server that the environment names."""
    # The first object makes it.
    obstore.put(obstore.store.from_url(url), "health/ready", b"ok")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "weed ended"
        with suppress(httpx.TransportError):
            httpx.get(url, timeout=5, verify=False)
            return
        time.sleep(0.1)
    raise AssertionError("weed does not answer")


if __name__ == "__main__":
    # `.ci/stock s3 COMMAND`: the command runs beside a server.
    with tempfile.TemporaryDirectory() as place, s3_server(Path(place)) as given:
        told = {**os.environ, **given, "CARDSYNC_TEST_BUCKET_URL": "s3://bucket"}
        sys.exit(subprocess.run(sys.argv[1:], env=told).returncode)

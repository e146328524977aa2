"""The files in deploy/ hold together: containers, compose, Kubernetes and systemd are read, checked
by the tools that there are, and name only settings, commands and metrics that exist.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from cardsync.operations.processes.installation_metrics import GAUGES
from cardsync.operations.processes.worker import STREAMS
from cardsync.platform.settings import PREFIX, Settings

DEPLOY = Path("deploy")
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("base", "small", "large")
COMPOSE = DEPLOY / "compose" / "compose.yaml"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
HADOLINT = Path(sys.executable).with_name("hadolint")
SCHEMAS = Path(sys.executable).with_name("check-jsonschema")
COMMANDS = {"serve", "worker", "migrate", "backup"}
OWNERS = {"migrate", "backup"}
# The most of a host that one shop after the other may take, in docs/deploying.md.
HOST_MB = 8 * 1024
# No newer one is older than this.
VERSION = "1.31"
# The exposure that `systemd-analyze security` may find at most, of 10.
MOST_EXPOSED = 2.0
# A web process under load, and its supervisor.
WEB_MB = 400
# The process that makes pictures beside a worker.
PICTURES_MB = 1024
Resource = dict[str, Any]


def documents(path: Path) -> list[Resource]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def merged(base: Any, patch: Any) -> Any:
    """A strategic merge, as far as our patches need it: maps by key, where null takes a key away,
    and lists of maps by name.
    """
    if isinstance(base, dict) and isinstance(patch, dict):
        both = {key: merged(base[key], patch[key]) for key in base.keys() & patch.keys()}
        whole = base | patch | both
        return {key: value for key, value in whole.items() if value is not None}
    if isinstance(base, list) and base and isinstance(base[0], dict) and "name" in base[0]:
        patches = {one["name"]: one for one in patch}
        assert patches.keys() <= {one["name"] for one in base}
        return [merged(one, patches.get(one["name"], {})) for one in base]
    return patch


@cache
def rendered(name: str) -> dict[tuple[str, str], Resource]:
    """The resources of an overlay by kind and name, as kustomize renders them."""
    folder = KUBERNETES / name
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    known = {"apiVersion", "kind", "namespace", "resources", "labels", "replicas", "patches"}
    assert told.keys() <= known, "this test renders no more than that"
    found: dict[tuple[str, str], Resource] = {}
    for one in told["resources"]:
        inner = one.removeprefix("../")
        parts = rendered(inner).values() if inner in OVERLAYS else documents(folder / one)
        found |= {(part["kind"], part["metadata"]["name"]): deepcopy(part) for part in parts}
    for replicas in told.get("replicas", ()):
        found["Deployment", replicas["name"]]["spec"]["replicas"] = replicas["count"]
    for patch in told.get("patches", ()):
        for part in documents(folder / patch["path"]):
            key = (part["kind"], part["metadata"]["name"])
            found[key] = merged(found[key], part)
    for part in found.values():
        if "namespace" in told:
            part["metadata"]["namespace"] = told["namespace"]
        for labels in told.get("labels", ()):
            part["metadata"]["labels"] = labels["pairs"] | part["metadata"].get("labels", {})
    return found


def deployments(name: str) -> list[Resource]:
    return [one for (kind, _), one in rendered(name).items() if kind == "Deployment"]


def templates(name: str) -> list[Resource]:
    """All pods, those that end by themselves, too."""
    jobs = [one for (kind, _), one in rendered(name).items() if kind == "CronJob"]
    ending = [one["spec"]["jobTemplate"]["spec"]["template"] for one in jobs]
    return [one["spec"]["template"] for one in deployments(name)] + ending


def containers(name: str, kind: str = "containers") -> list[Resource]:
    pods = [one["spec"] for one in templates(name)]
    return [one for pod in pods for one in pod.get(kind, ())]


@pytest.mark.parametrize("name", OVERLAYS)
def test_each_resource_fits_the_schemas_of_kubernetes(name: str) -> None:
    for resource in rendered(name).values():
        kubernetes_validate.validate(resource, VERSION, strict=True)


@pytest.mark.parametrize("name", OVERLAYS)
def test_kustomize_renders_the_same(name: str) -> None:
    if not (kubectl := shutil.which("kubectl")):
        pytest.skip("there is no kubectl, whose kustomize would render them")
    command = [kubectl, "kustomize", str(KUBERNETES / name)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    parts = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert {(one["kind"], one["metadata"]["name"]): one for one in parts} == rendered(name)


@pytest.mark.parametrize("name", OVERLAYS)
def test_pods_may_do_no_more_than_they_need(name: str) -> None:
    for part in templates(name):
        pod = part["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
    for one in containers(name) + containers(name, "initContainers"):
        allowed = one["securityContext"]
        assert allowed["readOnlyRootFilesystem"] is True
        assert allowed["allowPrivilegeEscalation"] is False
        assert allowed["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in one["resources"]["limits"]
        assert one["args"][0] in COMMANDS
    for one in containers(name):
        if one["args"][0] not in OWNERS:
            assert one["livenessProbe"]
            assert one["startupProbe"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_pod_has_a_budget_and_a_policy_and_ends_in_its_time(name: str) -> None:
    found = rendered(name)
    for part in deployments(name):
        labels = part["spec"]["template"]["metadata"]["labels"]
        assert part["spec"]["selector"]["matchLabels"] == labels
        key = part["metadata"]["name"]
        assert found["PodDisruptionBudget", key]["spec"]["selector"]["matchLabels"] == labels
        assert found["NetworkPolicy", key]["spec"]["podSelector"]["matchLabels"] == labels
        # A process has 20 seconds for its requests, and its supervisor five more.
        assert part["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 25
    out = found["NetworkPolicy", "cardsync-out"]["spec"]["podSelector"]["matchLabels"]
    assert all(out.items() <= one["metadata"]["labels"].items() for one in templates(name))


def test_pods_stay_behind_their_address_where_the_object_store_is_away() -> None:
    """They share it, and most requests need no object."""
    [web] = [one for one in containers("base") if one["name"] == "web"]
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz?exclude=object_store"


def heavy_mb(settings: dict[str, str]) -> int:
    """The most memory of a web process with its heavy ones, and with the one beside them that
    writes need.
    """
    processes, each = (settings[f"{PREFIX}HEAVY_{name}"] for name in ("PROCESSES", "MEMORY_MB"))
    return (int(processes) + 1) * int(each) + WEB_MB


@pytest.mark.parametrize("name", OVERLAYS)
def test_heavy_reads_fit_into_a_pod(name: str) -> None:
    settings = rendered(name)["ConfigMap", "cardsync"]["data"]
    [web] = [one for one in containers(name) if one["name"] == "web"]
    number = re.fullmatch(r"(\d+)Gi", web["resources"]["limits"]["memory"])
    assert number
    assert heavy_mb(settings) <= int(number[1]) * 1024


def worker_mb(settings: dict[str, str]) -> int:
    return int(settings[f"{PREFIX}WORKER_MEMORY_MB"]) + PICTURES_MB


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_worker_fits_into_a_pod(name: str) -> None:
    settings = rendered(name)["ConfigMap", "cardsync"]["data"]
    [worker] = [one for one in containers(name) if one["name"] == "worker"]
    number = re.fullmatch(r"(\d+)Gi", worker["resources"]["limits"]["memory"])
    assert number
    assert worker_mb(settings) <= int(number[1]) * 1024


@pytest.mark.parametrize(("name", "needs"), [("web-1", heavy_mb), ("worker-1", worker_mb)])
def test_processes_fit_into_a_container(name: str, needs: Callable[[dict[str, str]], int]) -> None:
    service = services()[name]
    # Files in /tmp count as memory of the container, too.
    kept = re.match(r"/tmp:size=(\d+)g,", service["tmpfs"][0])
    number = re.fullmatch(r"(\d+)g", service["mem_limit"])
    assert kept
    assert number
    assert needs(service["environment"]) <= (int(number[1]) - int(kept[1])) * 1024


def test_only_what_migrates_has_the_password_of_the_owner() -> None:
    for name, service in services().items():
        assert (name in OWNERS) == ("migration_database_url" in str(service))
    all_of_them = containers("base", "initContainers") + containers("base")
    owners = [one["args"] for one in all_of_them if "cardsync-migration" in str(one)]
    assert owners == [["migrate"], ["backup", "now"], ["backup", "rehearse"]]


def test_the_monitoring_reaches_the_metrics_of_every_pod() -> None:
    found = rendered("base")
    bind = found["ConfigMap", "cardsync"]["data"][f"{PREFIX}METRICS_BIND"]
    port = bind.removeprefix("0.0.0.0:")
    for part in deployments("base"):
        pod = part["spec"]["template"]
        asked = {"prometheus.io/scrape": "true", "prometheus.io/port": port}
        assert pod["metadata"]["annotations"] == asked
        [container] = pod["spec"]["containers"]
        assert {"name": "metrics", "containerPort": int(port)} in container["ports"]
        policy = found["NetworkPolicy", part["metadata"]["name"]]["spec"]["ingress"][-1]
        assert policy["ports"] == [{"protocol": "TCP", "port": int(port)}]
        assert "monitoring" in str(policy["from"])


def test_the_autoscaler_asks_for_a_metric_that_exists() -> None:
    page = Path("docs/deploying.md").read_text()
    for (kind, _), part in rendered("large").items():
        if kind != "HorizontalPodAutoscaler":
            continue
        target = part["spec"]["scaleTargetRef"]
        scaled = rendered("large")[target["kind"], target["name"]]
        # A number here would undo the autoscaler's with each apply.
        assert "replicas" not in scaled["spec"]
        for metric in part["spec"]["metrics"]:
            if metric["type"] == "External":
                name = metric["external"]["metric"]["name"]
                assert name in GAUGES
                assert f"seriesQuery: '{name}" in page
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    for told in (page, alerts):
        # More workers speed up no work whose pace others set.
        [left_out] = re.findall(r'stream!~"([a-z_|]+)"', told)
        assert {"pictures", "picture_files", "mail", "webhooks"} <= set(left_out.split("|"))
        assert set(left_out.split("|")) < set(STREAMS)


def test_large_says_where_the_urls_of_the_pooler_and_the_copy_belong() -> None:
    told = (KUBERNETES / "large" / "settings.yaml").read_text()
    page = Path("docs/deploying.md").read_text()
    kubernetes = page.partition("## Kubernetes")[2].partition("\n## ")[0]
    for name in ("POOLER", "READ"):
        assert f"{PREFIX}{name}_DATABASE_URL" in told
        assert f"{PREFIX}{name}_DATABASE_URL" in kubernetes


def test_only_settings_that_exist_are_set() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = {path: path.read_text() for path in files}
    fields = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    # What compose itself reads.
    own = {f"{PREFIX}{name}" for name in ("IMAGE", "STORE_URL", "STORE_SECRET")}
    for path, text in texts.items():
        for name in re.findall(rf"\b{PREFIX}[A-Z][A-Z_]*\b", text):
            assert name.removesuffix("_FILE") in fields | own or name in fields, (path, name)


def services() -> dict[str, Resource]:
    found: dict[str, Resource] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def test_compose_fits_its_schema_and_composes() -> None:
    schema = [SCHEMAS, "--builtin-schema", "vendor.compose-spec", COMPOSE]
    done = subprocess.run(schema, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    docker = shutil.which("docker")
    if (
        docker
        and not subprocess.run([docker, "compose", "version"], capture_output=True).returncode
    ):
        told = [docker, "compose", "-f", str(COMPOSE), "--profile", "backup", "config", "--quiet"]
        secret = {f"{PREFIX}STORE_SECRET": "none"}
        subprocess.run(told, check=True, env=os.environ | secret)


def test_compose_has_two_of_each_kind_and_names_only_what_it_has() -> None:
    whole = yaml.safe_load(COMPOSE.read_text())
    assert services().keys() == {
        "migrate", "backup", "web-1", "web-2", "worker-1", "worker-2", "database", "store", "proxy"
    }  # fmt: skip
    for name, service in services().items():
        for other, how in service.get("depends_on", {}).items():
            if other == "migrate":
                assert how == {"condition": "service_completed_successfully"}
                continue
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services()[other] or other.startswith("web")
        assert set(service.get("secrets", ())) <= whole["secrets"].keys()
        assert set(service["networks"]) <= whole["networks"].keys()
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in whole["volumes"] or (COMPOSE.parent / source).is_file(), source
        if name.startswith((*OWNERS, "web", "worker")):
            assert service["command"][0] in COMMANDS
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["user"] == "10001:10001"


def test_a_worker_whose_file_is_old_is_unhealthy(tmp_path: Path) -> None:
    how, program = services()["worker-1"]["healthcheck"]["test"]
    assert how == "CMD-SHELL"
    file = tmp_path / "worker-lives"
    program = program.replace("$$", "$").replace("/tmp/worker-lives", str(file))

    def is_healthy() -> bool:
        return subprocess.run(["sh", "-c", program], stderr=subprocess.DEVNULL).returncode == 0

    assert not is_healthy()
    file.touch()
    assert is_healthy()
    os.utime(file, (0, 0))
    assert not is_healthy()


def test_a_proxy_knows_both_web_containers() -> None:
    text = (DEPLOY / "compose" / "nginx.conf").read_text()
    # A container that is made anew has another address.
    assert set(re.findall(r"server (web-\d):8000 resolve ", text)) == {"web-1", "web-2"}
    assert "resolver 127.0.0.11" in text


def test_the_secrets_of_compose_are_made_once(tmp_path: Path) -> None:
    script = shutil.copy(DEPLOY / "compose" / "secrets.sh", tmp_path)
    subprocess.run(["sh", script], check=True)
    wanted = {
        Path(one["file"]).name for one in yaml.safe_load(COMPOSE.read_text())["secrets"].values()
    }
    assert {path.name for path in (tmp_path / "secrets").iterdir()} == wanted
    url = (tmp_path / "secrets" / "database_url").read_text()
    assert Settings(database_url=url).database_url == url
    assert subprocess.run(["sh", script], capture_output=True).returncode == 1
    assert (tmp_path / "secrets" / "database_url").read_text() == url
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0


def test_the_container_file_passes_its_linter() -> None:
    if not HADOLINT.exists():
        pytest.skip("there is no hadolint beside the interpreter")
    done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_runs_as_nobody_special_and_has_what_it_is_built_from() -> None:
    text = DOCKERFILE.read_text()
    assert text.rindex("\nUSER 10001:10001") > text.rindex("\nFROM ")
    assert "\nHEALTHCHECK " in text
    allowed = Path(f"{DOCKERFILE}.dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
        for source in line.split():
            assert Path(source).exists(), source
            assert f"!{source.rstrip('/')}" in allowed, source


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_hardened(unit: Path) -> None:
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("there is no systemd-analyze")
    command = [program, "security", "--offline=true", "--no-pager", f"./{unit}"]
    told = subprocess.run(command, capture_output=True, text=True)
    [level] = re.findall(r"exposure level for \S+: ([0-9.]+)", told.stdout) or [told.stderr]
    assert float(level) < MOST_EXPOSED


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_let_processes_yield_the_processor(unit: Path) -> None:
    # The last word counts: @resources holds the call, too.
    filters = re.findall(r"^SystemCallFilter=(.+)$", unit.read_text(), re.M)
    assert "setpriority" in filters[-1].split()


def test_units_leave_the_others_where_memory_ends_one_process() -> None:
    """A unit that stopped whole would take every shop's service with one shop's backtest."""
    for unit in UNITS:
        text = unit.read_text()
        assert re.search(r"^OOMPolicy=continue$", text, re.M)
        settings = dict(re.findall(rf"({PREFIX}\w+)=(\S+)", text))
        needs = heavy_mb(settings) if unit.name == "cardsync.service" else 0
        assert needs + worker_mb(settings) < HOST_MB


def test_units_call_commands_that_exist() -> None:
    assert len(UNITS) == 2
    for unit in UNITS:
        [command] = re.findall(
            r"^ExecStart=.*/opt/cardsync/bin/cardsync (\S+)", unit.read_text(), re.M
        )
        assert command in COMMANDS


def test_an_image_is_built_and_starts() -> None:
    """It alone finds what the image lacks; where no builder runs, nothing is built."""
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "info"], capture_output=True).returncode:
        pytest.skip("no builder of images runs here")
    build = [docker, "build", "-q", "-f", str(DOCKERFILE), "."]
    image = subprocess.run(build, check=True, capture_output=True, text=True).stdout.strip()
    run = [docker, "run", "--rm", "--read-only", "--tmpfs", "/data", "--tmpfs", "/tmp", image]
    told = subprocess.run([*run, "--version"], check=True, capture_output=True, text=True)
    assert "cardsync" in told.stdout

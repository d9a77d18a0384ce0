"""Clusters: files for Compose, Kubernetes and Grafana that say what is true; readiness means it."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driftbandit import Client, __version__
from driftbandit.service.routes import ROUTES
from serving import ARMS, NEWS, ask, in_thread

yaml = pytest.importorskip("yaml")
DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "driftbandit"
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="needs helm")
OPEN = {route.path for route in ROUTES if route.role is None}  # what probes may ask for


def helm(*arguments):
    done = subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rendered(*options):
    return [each for each in yaml.safe_load_all(helm("template", "shop", CHART, *options)) if each]


@needs_helm
def test_the_chart_is_linted_and_its_manifests_fit_the_schemas_of_kubernetes():
    import kubernetes_validate

    assert "0 chart(s) failed" in helm("lint", "--strict", CHART)
    settings = [[], ["--set", "replicas=1,metrics.scrape=true,image.tag=x,nodeSelector.disk=ssd"]]
    kinds = [{"Deployment", "Service", "PodDisruptionBudget"}, {"Deployment", "Service"}]
    for options, expected in zip(settings, kinds):
        found = rendered(*options)
        assert {each["kind"] for each in found} == expected
        for each in found:
            kubernetes_validate.validate(each, "1.30", strict=True)


@needs_helm
def test_the_chart_asks_for_what_the_service_and_the_image_have():
    by_kind = {each["kind"]: each for each in rendered()}
    pod = by_kind["Deployment"]["spec"]["template"]
    (box,) = pod["spec"]["containers"]
    image = (DEPLOY / "Dockerfile").read_text()
    for probe in ("readinessProbe", "livenessProbe"):
        assert box[probe]["httpGet"]["path"] in OPEN
    assert box["readinessProbe"]["httpGet"]["path"] == "/readyz"
    for port in box["ports"]:
        assert f"EXPOSE {port['containerPort']}\n" in image
    for env in box["env"]:
        assert env["name"] in ("LEDGER", "PGPASSWORD")
    assert "LEDGER=" in image
    assert f"USER {pod['spec']['securityContext']['runAsUser']}\n" in image
    assert pod["metadata"]["labels"].items() >= by_kind["Service"]["spec"]["selector"].items()
    assert box["image"] == f"driftbandit:{__version__}"


def test_compose_has_two_services_that_wait_for_the_database():
    made = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
    services = made["services"]
    assert set(services) == {"postgres", "one", "two"}
    image = (DEPLOY / "Dockerfile").read_text()
    for name in ("one", "two"):
        each = services[name]
        assert (DEPLOY / each["build"]["context"] / each["build"]["dockerfile"]).is_file()
        assert each["depends_on"] == {"postgres": {"condition": "service_healthy"}}
        assert re.search(r"8100(/\w+)", each["healthcheck"]["test"][-1])[1] == "/readyz"
        assert each["ports"][0].endswith(":8100")
        assert each["ports"][0].startswith("127.0.0.1:")
        assert "LEDGER=" in image
    mounts = [each.split(":")[0] for each in services["postgres"]["volumes"]]
    assert set(mounts) <= set(made["volumes"])


def test_every_metric_of_the_dashboard_exists(tmp_path, no_wait_for_the_disk):
    board = json.loads((DEPLOY / "grafana" / "driftbandit.json").read_text())
    asked = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    asked |= {each["query"] for each in board["templating"]["list"]}
    with in_thread(tmp_path / "a.db") as port:
        client = Client(f"http://127.0.0.1:{port}", "news", timeout=30)
        client.declare(**NEWS)
        client.reward(client.decide({"age": 30}, ARMS).id, 1)
        client.close()
        text = ask(port, "GET", "/metrics")[1].decode()
    named = {name for each in asked for name in re.findall(r"driftbandit_\w+", each)}
    lines = {name: [] for name in named}
    for line in text.splitlines():
        if (name := re.match(r"\w+", line)) and name[0] in lines:
            lines[name[0]].append(line)
    assert named
    for name, found in lines.items():
        assert found, f"there is no metric {name}"
    for each in asked:  # labels that a query selects by or sums over, too
        for name, labels in re.findall(r"(driftbandit_\w+){([^}]*)}", each):
            for label in re.findall(r"(\w+)=~?\"", labels):
                assert f'{label}="' in lines[name][0], (name, label)
    events = {re.search(r'event="([^"]*)"', line)[1] for line in lines["driftbandit_events_total"]}
    assert {"decide", "reward counted"} <= events


@pytest.mark.slow
def test_readiness_follows_the_database(postgres_of_its_own):
    """Not ready while the database is away, alive all the time, and ready again afterwards."""
    base = postgres_of_its_own
    with in_thread(base.url()) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        until(port, 200)
        base.stop()
        until(port, 503)
        assert ask(port, "GET", "/healthz")[0] == 200
        base.start()
        until(port, 200)
        made = ask(port, "POST", "/v1/loops/news/decisions", {"context": {}, "arms": ARMS})
        assert made[0] == 200


def until(port, status):
    end = time.monotonic() + 30
    while (found := ask(port, "GET", "/readyz")[0]) != status:
        assert time.monotonic() < end, found
        time.sleep(0.05)


@pytest.fixture
def postgres_of_its_own():
    databases = pytest.importorskip("databases")
    if shutil.which("initdb") is None:
        pytest.skip("needs PostgreSQL")
    base = databases.Server()
    yield base
    base.remove()

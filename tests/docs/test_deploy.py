"""Container and deployment files agree with the gateway, and with each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from understudy.cli import parser
from understudy.gateway.config import examine

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = re.search(r'^version = "(.+)"$', PROJECT, re.M)[1]  # type: ignore[index]


def instructions(name: str) -> list[str]:
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", joined, re.M)


def test_the_image_runs_a_command_of_ours_as_somebody_without_rights() -> None:
    (entry,), (command,) = instructions("ENTRYPOINT"), instructions("CMD")
    assert json.loads(entry) == ["understudy"]
    assert instructions("USER") == ["10001:10001"]
    arguments = parser().parse_args(json.loads(command))
    assert (arguments.verb, arguments.host) == ("serve", "0.0.0.0")


def test_what_the_image_copies_is_let_through_and_exists() -> None:
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    copied = {
        word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]
    }
    assert copied == let_through
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_image_installs_extras_that_exist_and_what_is_pinned() -> None:
    (install,) = (line for line in instructions("RUN") if "pip install" in line)
    extras = re.search(r"\[([\w,]+)\]", install)
    assert extras is not None
    known = set(re.findall(r"^(\w+) = \[", PROJECT, re.M))
    assert set(extras[1].split(",")) <= known
    assert "--constraint constraints.txt" in install


def test_the_linter_of_dockerfiles_has_nothing_to_say() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("no hadolint here")
    done = subprocess.run(["hadolint", ROOT / "Dockerfile"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


# Compose and Kubernetes


def documents(name: str) -> list[dict[str, object]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((ROOT / name).read_text(encoding="utf-8")))


def variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{(\w+)", text))


def test_compose_gives_every_variable_that_its_file_reads() -> None:
    (compose,) = documents("compose.yaml")
    service = compose["services"]["understudy"]  # type: ignore[index]
    assert service["image"] == f"understudy:{VERSION}"
    assert service["read_only"] is True
    file = (ROOT / "deploy/understudy.toml").read_text(encoding="utf-8")
    assert set(service["environment"]) == variables(file)
    assert "./deploy:/etc/understudy:ro" in service["volumes"]


KUBERNETES = ROOT / "deploy/kubernetes"
MANIFESTS = (
    "configmap",
    "deployment",
    "service",
    "poddisruptionbudget",
    "horizontalpodautoscaler",
)


def manifest(name: str) -> dict[str, Any]:
    (found,) = documents(f"deploy/kubernetes/{name}.yaml")
    return found


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_a_manifest_is_what_the_schema_of_kubernetes_wants(name: str, version: str) -> None:
    judge = pytest.importorskip("kubernetes_validate")
    judge.validate(manifest(name), version, strict=True)


def test_the_customization_lists_every_manifest_and_names_the_image() -> None:
    kustomization = manifest("kustomization")
    files = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert sorted(kustomization["resources"]) == sorted(files)
    assert files == {f"{name}.yaml" for name in MANIFESTS}
    assert kustomization["images"] == [{"name": "understudy", "newTag": VERSION}]


def test_the_manifests_hang_together() -> None:
    deployment = manifest("deployment")["spec"]
    pod = deployment["template"]
    labels = pod["metadata"]["labels"]
    selectors = [
        deployment["selector"]["matchLabels"],
        manifest("service")["spec"]["selector"],
        manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"],
        *(s["labelSelector"]["matchLabels"] for s in pod["spec"]["topologySpreadConstraints"]),
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == f"understudy:{VERSION}"
    assert parser().parse_args(container["args"]).config == "/etc/understudy/understudy.toml"
    (port,) = container["ports"]
    (served,) = manifest("service")["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}
    assert pod["spec"]["volumes"] == [
        {"name": "config", "configMap": {"name": manifest("configmap")["metadata"]["name"]}}
    ]


def test_the_autoscaler_rules_the_deployment_alone() -> None:
    scaler, deployment = manifest("horizontalpodautoscaler")["spec"], manifest("deployment")
    assert scaler["scaleTargetRef"] == {
        "apiVersion": deployment["apiVersion"],
        "kind": deployment["kind"],
        "name": deployment["metadata"]["name"],
    }
    assert "replicas" not in deployment["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 200)
    # A share of what is requested: without a request there is nothing to scale by.
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {metric["resource"]["name"] for metric in scaler["metrics"]} <= set(
        container["resources"]["requests"]
    )


def test_the_configuration_within_the_manifests_has_no_mistake_and_time_to_drain() -> None:
    text = manifest("configmap")["data"]["understudy.toml"]
    read, problems = examine(text, dict.fromkeys(variables(text), "k-0123456789"))
    assert problems == []
    pod = manifest("deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    sleep, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    drain = float(str(read.gateway["drain_timeout"]))
    assert sleep == "sleep"
    assert pod["terminationGracePeriodSeconds"] > float(pause) + drain


# nginx and systemd


def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    trustme = pytest.importorskip("trustme")
    if nginx is None:
        pytest.skip("no nginx here")
    issued = trustme.CA().issue_cert("llm.example.com")
    issued.private_key_pem.write_to_path(tmp_path / "key")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "pem")
    text = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    text = re.sub(r"/etc/ssl/llm\.example\.com\.(\w+)", rf"{tmp_path}/\1", text)
    (tmp_path / "site.conf").write_text(text)
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ include site.conf; }}"
    (tmp_path / "nginx.conf").write_text(whole)
    argv = [nginx, "-t", "-q", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_shows_the_file_that_is_shipped() -> None:
    page = (ROOT / "docs/how-to/deploy-behind-nginx.md").read_text(encoding="utf-8")
    shipped = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    assert shipped.partition("\n\n")[2].strip() in page


def test_the_unit_runs_a_command_of_ours() -> None:
    unit = (ROOT / "deploy/understudy.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=/opt/understudy/bin/understudy (.*)$", unit, re.M)
    assert started is not None
    assert parser().parse_args(started[1].split()).verb == "serve"

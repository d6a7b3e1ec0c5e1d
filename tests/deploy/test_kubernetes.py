"""The Kubernetes manifests: valid, closed to outsiders, and at one with each other."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from hinged_service.cli.serve import SHUTDOWN_GRACE_S
from hinged_service.settings import Settings
from tests.deploy.files import (
    DEPLOY,
    compose,
    containers,
    every,
    kustomization,
    manifest,
    manifests,
    pinned,
)
from tests.deploy.test_compose import parse

VERSIONS = ("1.30", kubernetes_validate.latest_version())
OF_THE_OPERATOR = {"ServiceMonitor"}
PODS = sorted(containers())


def title(one: dict[str, Any]) -> str:
    return f"{one['kind']}-{one['metadata']['name']}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("one", manifests(), ids=title)
def test_the_schema_allows_it(one: dict[str, Any], version: str) -> None:
    if one["kind"] not in OF_THE_OPERATOR:
        kubernetes_validate.validate(one, version, strict=True)


def test_applied_files_exist() -> None:
    whole = kustomization()
    applied = {DEPLOY / name for name in whole["resources"]}
    apart = {DEPLOY / "kubernetes" / name for name in ("monitor.yaml", "secret.example.yaml")}
    assert applied | apart == set((DEPLOY / "kubernetes").glob("*.yaml"))
    assert not applied & apart
    for made in whole["configMapGenerator"]:
        assert all((DEPLOY / name).is_file() for name in made["files"])


def test_secrets_come_from_where_compose_has_them() -> None:
    composed = {secret["file"] for secret in compose()["secrets"].values()}
    for made in kustomization()["secretGenerator"]:
        for name in made["files"]:
            assert f"deploy/{name.partition('=')[2]}" in composed, name


@pytest.mark.parametrize("name", PODS)
def test_a_container_can_do_no_more_than_it_must(name: str) -> None:
    kind = "Deployment" if name == "hinged" else "StatefulSet"
    pod = manifest(kind, name)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert containers()[name]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("name", PODS)
def test_a_container_is_bounded_and_asked(name: str) -> None:
    container = containers()[name]
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()


def test_images_are_pinned() -> None:
    images = {container["image"] for container in containers().values()}
    for image in kustomization()["images"]:
        assert image["name"] in images
        images = images - {image["name"]} | {f"{image['newName']}:{image['newTag']}"}
    assert all(pinned(image) for image in images), images
    assert containers()["redis"]["image"] == compose()["services"]["redis"]["image"]


def test_volumes_are_mounted_and_made() -> None:
    whole = kustomization()
    made = {
        one["name"] for kind in ("configMapGenerator", "secretGenerator") for one in whole[kind]
    }
    for kind, name in (("Deployment", "hinged"), ("StatefulSet", "redis")):
        spec = manifest(kind, name)["spec"]
        volumes = {volume["name"]: volume for volume in spec["template"]["spec"]["volumes"]}
        claimed = {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
        mounted = {mount["name"] for mount in containers()[name]["volumeMounts"]}
        assert mounted == volumes.keys() | claimed
        for volume in volumes.values():
            for source, key in (("secret", "secretName"), ("configMap", "name")):
                assert source not in volume or volume[source][key] in made


def test_the_service_is_started_as_its_command_line_and_settings_know_it() -> None:
    container = containers()["hinged"]
    options = parse(container["args"])
    (port,) = container["ports"]
    assert (options["host"], options["port"], options["workers"]) == (
        "0.0.0.0",
        port["containerPort"],
        1,
    )
    assert options["insecure"] is False
    settings = {f"HINGED_{name.upper()}" for name in Settings.model_fields}
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert environment.keys() <= settings
    (mount,) = [m for m in container["volumeMounts"] if m["name"] == "secrets"]
    assert environment["HINGED_KEYS_FILE"] == f"{mount['mountPath']}/keys.json"
    assert environment["HINGED_REDIS_PASSWORD_FILE"] == f"{mount['mountPath']}/redis_password"
    made = next(one for one in kustomization()["secretGenerator"] if one["name"] == "hinged")
    inside = {name.partition("=")[0] for name in made["files"]}
    assert inside == {"keys.json", "redis_password"} == manifest("Secret")["stringData"].keys()
    user = manifest("Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert [f"{user['runAsUser']}:{user['runAsGroup']}"] == every("USER")
    assert [str(port["containerPort"])] == every("EXPOSE")


def test_a_pod_has_time_to_stop() -> None:
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    pause_s = containers()["hinged"]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= pause_s + SHUTDOWN_GRACE_S + 10


def test_all_selectors_choose_the_same_pods() -> None:
    label = {"app.kubernetes.io/name": "hinged"}
    deployment = manifest("Deployment")["spec"]
    assert deployment["selector"]["matchLabels"] == label
    assert deployment["template"]["metadata"]["labels"] == label
    assert "replicas" not in deployment
    assert manifest("Service")["spec"]["selector"] == label
    assert manifest("Service")["metadata"]["labels"] == label
    assert manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == label
    assert manifest("ServiceMonitor")["spec"]["selector"]["matchLabels"] == label
    target = manifest("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", "hinged")
    (rule,) = manifest("Ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    ports = {port["name"] for port in manifest("Service")["spec"]["ports"]}
    assert path["backend"]["service"]["name"] == manifest("Service")["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] in ports
    assert manifest("ServiceMonitor")["spec"]["endpoints"][0]["port"] in ports


def test_only_what_is_listed_goes_in_or_out() -> None:
    nothing = manifest("NetworkPolicy", "nothing")["spec"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    (source,) = manifest("NetworkPolicy", "redis")["spec"]["ingress"]
    assert source["from"] == [
        {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "hinged"}}}
    ]
    assert "egress" not in manifest("NetworkPolicy", "redis")["spec"]

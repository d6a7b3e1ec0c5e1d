"""docker-compose.yml: valid, closed to outsiders, and made of files that exist."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main
from compose_spec import PyOptions

from hinged_service.cli.main import cli
from hinged_service.settings import Settings
from tests.deploy.files import ROOT, compose, every, pinned

WHOLE = compose()
SERVICES: dict[str, dict[str, Any]] = WHOLE["services"]
NAMES = sorted(SERVICES)


def parse(arguments: list[str]) -> dict[str, Any]:
    """Parse `serve …` with the real command line; fails for what it does not know."""
    assert arguments[0] == "serve"
    commands: Any = typer.main.get_command(cli)
    return dict(commands.commands["serve"].make_context("serve", list(arguments[1:])).params)


def test_the_specification_of_compose_allows_it() -> None:
    PyOptions(apply_merge=True).from_yaml((ROOT / "docker-compose.yml").read_text()).validate()


@pytest.mark.parametrize("name", NAMES)
def test_a_service_can_do_no_more_than_it_must(name: str) -> None:
    service = SERVICES[name]
    user, _, _ = service["user"].partition(":")
    assert int(user) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "mem_limit" in service
    assert "privileged" not in service
    assert "cap_add" not in service


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_pinned_or_built_here(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        assert (ROOT / service["build"]["dockerfile"]).is_file()
    else:
        assert pinned(service["image"])


@pytest.mark.parametrize("name", NAMES)
def test_a_service_is_watched_and_started_again(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", NAMES)
def test_ports_are_published_on_this_machine_only(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:"), port


def test_redis_is_reached_by_the_service_only() -> None:
    assert "ports" not in SERVICES["redis"]
    (network,) = SERVICES["redis"]["networks"]
    assert WHOLE["networks"][network] == {"internal": True}
    assert {n for n in NAMES if network in SERVICES[n]["networks"]} == {"redis", "hinged"}


@pytest.mark.parametrize("name", NAMES)
def test_mounted_files_exist(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source, _, *options = volume.split(":")
        if source.startswith("."):
            assert (ROOT / source).exists(), source
            assert options == ["ro"], volume
        else:
            assert source in WHOLE["volumes"]


def test_nothing_in_the_file_is_a_secret() -> None:
    for name in NAMES:
        service = SERVICES[name]
        environment = service.get("environment", {})
        for variable, value in environment.items():
            secret = any(word in variable for word in ("PASSWORD", "KEY", "TOKEN", "SECRET"))
            assert not secret or str(value).startswith("/run/secrets/"), variable
        for secret in service.get("secrets", []):
            assert secret in WHOLE["secrets"], secret
    for secret in WHOLE["secrets"].values():
        assert secret["file"].startswith("deploy/secrets/")


def test_the_service_is_started_as_its_command_line_and_settings_know_it() -> None:
    service = SERVICES["hinged"]
    options = parse(service["command"])
    assert (options["host"], options["workers"], options["insecure"]) == ("0.0.0.0", 2, False)
    assert service["ports"] == [f"127.0.0.1:8000:{options['port']}"]
    settings = {f"HINGED_{name.upper()}" for name in Settings.model_fields}
    assert {n for n in service["environment"] if n.startswith("HINGED_")} <= settings
    for variable in ("HINGED_KEYS_FILE", "HINGED_REDIS_PASSWORD_FILE"):
        assert service["environment"][variable].removeprefix("/run/secrets/") in service["secrets"]
    assert [service["user"]] == every("USER")
    assert "/tmp" in service["tmpfs"]

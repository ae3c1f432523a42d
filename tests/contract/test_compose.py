"""docker-compose.yml as the Compose program resolves it: what keeps the services safe, and their work."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.config import locate, read
from app.config_environment import CONFIG_VARIABLE, known_variables
from server.http.access import access_of, refuse_open_place
from tests.support.compose import ROOT, deployment, resolved, run_config

ROLES = {"scheduler", "worker", "writer", "serve"}
ALWAYS = {"valkey", *ROLES}
PROFILED = {"cli", "embeddings"}
ALL = sorted(ALWAYS | PROFILED)
OURS = sorted({*ROLES, "cli"})
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts") / 'it\'s a "$HOME" folder #1'
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    return deployment(tmp_path_factory.mktemp("deployment"), corpus)


@pytest.fixture(scope="module")
def config(folder: Path) -> dict[str, Any]:
    return resolved(folder, ["cli", "embeddings"])


def service(config: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = config["services"][name]
    return found


def test_the_services_of_a_plain_start(folder: Path, config: dict[str, Any]) -> None:
    """C-09: valkey, scheduler, worker, writer and server; the others only when asked for."""
    assert set(resolved(folder)["services"]) == ALWAYS
    assert set(config["services"]) == ALWAYS | PROFILED


def test_without_compose_init_it_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yml").write_text(COMPOSE_TEXT, "utf-8")
    done = run_config(tmp_path)
    assert done.returncode != 0
    assert "run make compose-init" in done.stderr


@pytest.mark.parametrize("name", ALL)
def test_every_container_is_confined(name: str, config: dict[str, Any]) -> None:
    it = service(config, name)
    uid, gid = it["user"].split(":")
    assert int(uid) > 0 and gid.isdigit()
    assert it["read_only"] is True
    assert it["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in it["security_opt"]
    assert not {"cap_add", "privileged", "devices", "network_mode", "pid", "ipc"} & set(it)
    assert it["build"]["args"]["KNOWLEDGE_UID"] == uid
    limits = it["deploy"]["resources"]["limits"]
    assert limits["cpus"] and limits["memory"] and limits["pids"]


@pytest.mark.parametrize("name", ALL)
def test_every_container_ends_in_order_and_logs_within_limits(name: str, config: dict[str, Any]) -> None:
    it = service(config, name)
    assert it["stop_grace_period"] == "15s"  # a role drains within ten
    assert it["restart"] == ("no" if name == "cli" else "unless-stopped")
    assert set(it["logging"]["options"]) == {"max-size", "max-file"}
    assert name == "valkey" or it["init"] is True


@pytest.mark.parametrize("name", sorted(ALWAYS | {"embeddings"}))
def test_health_is_asked_without_a_shell(name: str, config: dict[str, Any]) -> None:
    check = service(config, name)["healthcheck"]
    assert check["test"][0] == "CMD"
    if name in ROLES:
        assert check["test"] == ["CMD", "knowledge", name, "--check"]
        assert service(config, name)["command"] == [name, "--log-format", "json"]


def test_the_queue_keeps_work_and_drops_none(config: dict[str, Any]) -> None:
    """Fault 16: an append-only file, and no eviction."""
    valkey = service(config, "valkey")
    command = valkey["command"]
    options = dict(zip(command[::2], command[1::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "everysec"
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--maxmemory"] == "256mb"
    assert options["--aclfile"] == "/run/secrets/queue_users"
    assert [(mount["type"], mount["source"], mount["target"]) for mount in valkey["volumes"]] == [
        ("volume", "queue", options["--dir"])
    ]
    assert "ports" not in valkey
    assert list(valkey["networks"]) == ["queue"]
    assert config["networks"]["queue"]["internal"] is True


@pytest.mark.parametrize("name", ["scheduler", "worker", "writer"])
def test_who_needs_the_queue_starts_after_it(name: str, config: dict[str, Any]) -> None:
    assert service(config, name)["depends_on"]["valkey"]["condition"] == "service_healthy"


def test_workers_are_two(config: dict[str, Any]) -> None:
    assert service(config, "worker")["deploy"]["replicas"] == 2
    assert not [name for name in ALWAYS - {"worker"} if "replicas" in service(config, name)["deploy"]]
    assert not [name for name in ALL if "container_name" in service(config, name)]


@pytest.mark.parametrize("name", OURS)
def test_one_volume_of_stores_and_texts_that_cannot_be_written(
    name: str, config: dict[str, Any], corpus: Path, folder: Path
) -> None:
    """C-09. Nothing but the index is writable, and a missing folder is not made by the mount."""
    mounts = {mount["target"]: mount for mount in service(config, name)["volumes"]}
    assert set(mounts) == {"/stores", "/corpus", "/etc/knowledge"}
    assert (mounts["/stores"]["type"], mounts["/stores"]["source"]) == ("volume", "stores")
    # `config` doubles the dollar sign, for its output is a file of its own kind
    assert mounts["/corpus"]["source"].replace("$$", "$") == str(corpus)
    assert mounts["/etc/knowledge"]["source"] == str(folder / "deploy" / "config")
    for target in ("/corpus", "/etc/knowledge"):
        assert mounts[target]["read_only"] is True
        assert mounts[target]["bind"].get("create_host_path", False) is False
    assert [entry.partition(":")[0] for entry in service(config, name)["tmpfs"]] == ["/tmp"]


def test_volumes_are_of_this_host(config: dict[str, Any]) -> None:
    """Fault 27: no driver that could put the index on a network."""
    assert set(config["volumes"]) == {"stores", "queue"}
    assert not [name for name, volume in config["volumes"].items() if {"driver", "driver_opts"} & set(volume)]


def test_no_secret_is_in_the_resolved_configuration(folder: Path, config: dict[str, Any]) -> None:
    password = (folder / "secrets" / "queue-password").read_text(encoding="utf-8").strip()
    assert len(password) >= 32
    done = run_config(folder, ["cli", "embeddings"])
    assert password not in done.stdout + done.stderr
    for name in ("read-token", "operate-token"):
        assert (folder / "secrets" / name).read_text(encoding="utf-8").strip() not in done.stdout + done.stderr
    assert password not in (folder / "secrets" / "queue-users").read_text(encoding="utf-8")
    assert {name: secret["file"] for name, secret in config["secrets"].items()} == {
        "queue_password": str(folder / "secrets" / "queue-password"),
        "queue_users": str(folder / "secrets" / "queue-users"),
        "read_token": str(folder / "secrets" / "read-token"),
        "operate_token": str(folder / "secrets" / "operate-token"),
    }
    given = {name: [secret["source"] for secret in service(config, name).get("secrets", ())] for name in ALL}
    assert given == {
        **{name: ["queue_password"] for name in OURS},
        "serve": ["queue_password", "read_token", "operate_token"],
        "valkey": ["queue_users"],
        "embeddings": [],
    }


@pytest.mark.parametrize("name", OURS)
def test_the_environment_is_what_the_configuration_knows(name: str, config: dict[str, Any]) -> None:
    """A variable that is not known would be refused by every command (see app.config_environment)."""
    environment = service(config, name)["environment"]
    assert set(environment) <= {CONFIG_VARIABLE, *known_variables()}
    assert environment["KNOWLEDGE_QUEUE__URL"] == "redis://valkey:6379/0"
    assert environment["KNOWLEDGE_QUEUE__PASSWORD_FILE"] == "/run/secrets/queue_password"


def test_only_the_server_is_published_and_only_to_this_host(config: dict[str, Any]) -> None:
    published = {name: service(config, name)["ports"] for name in ALL if "ports" in service(config, name)}
    assert list(published) == ["serve"]
    assert [(port["host_ip"], port["target"]) for port in published["serve"]] == [("127.0.0.1", 8765)]


def test_the_server_asks_for_a_token_and_knows_its_own_name(folder: Path, config: dict[str, Any]) -> None:
    """T27: it listens beyond its container, so it would not start without one. A collector asks it by its name."""
    environment = service(config, "serve")["environment"]
    assert environment["KNOWLEDGE_SERVER__HOST"] == "0.0.0.0"
    assert environment["KNOWLEDGE_SERVER__READ_TOKEN_FILE"] == "/run/secrets/read_token"
    assert environment["KNOWLEDGE_SERVER__OPERATE_TOKEN_FILE"] == "/run/secrets/operate_token"
    assert environment["KNOWLEDGE_SERVER__ALLOWED_HOSTS"] == "serve"
    scraped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    assert 'targets: ["serve:8765"]' in scraped
    values = {
        **environment,
        "KNOWLEDGE_SERVER__READ_TOKEN_FILE": str(folder / "secrets" / "read-token"),
        "KNOWLEDGE_SERVER__OPERATE_TOKEN_FILE": str(folder / "secrets" / "operate-token"),
        CONFIG_VARIABLE: "",
    }
    settings = read(
        locate(folder, config=folder / "deploy" / "config" / "knowledge.yaml", environ={}),
        values,
        cwd=folder,
        absent_roots="note",
    ).settings
    refuse_open_place(settings)
    access = access_of(settings)
    assert access.has_sign_in
    assert "serve" in access.hosts.names


def test_the_example_names_every_variable_that_is_read() -> None:
    read = set(re.findall(r"\$\{(\w+)", COMPOSE_TEXT))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert set(re.findall(r"^#?(\w+)=", example, re.MULTILINE)) == read | {"COMPOSE_PROFILES"}


def test_images_are_pinned_to_the_minor_and_none_is_alpine() -> None:
    defaults = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert dict(re.findall(r"\$\{(\w+_IMAGE):-([\w./-]+:[\w.-]+)\}", COMPOSE_TEXT)) == {
        **defaults,
        "KNOWLEDGE_IMAGE": "knowledge-service:local",
        "KNOWLEDGE_QUEUE_IMAGE": "knowledge-queue:local",
    }
    assert all(re.search(r":\d+\.\d+(-|$)", image) and "alpine" not in image for image in defaults.values())


def test_the_image_is_built_from_the_locks_by_nobody_special() -> None:
    stages = [stage.strip() for stage in re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]]
    assert "--require-hashes -r requirements-runtime.lock" in DOCKERFILE
    assert "-r requirements.lock" not in DOCKERFILE
    for name in ("runtime", "queue"):
        (stage,) = [stage for stage in stages if stage.splitlines()[0].endswith(f" AS {name}")]
        assert re.findall(r"^USER (.+)$", stage, re.MULTILINE)[-1] == "${KNOWLEDGE_UID}:${KNOWLEDGE_GID}"
        assert re.search(r"^ENTRYPOINT \[", stage, re.MULTILINE)
    assert stages[-1] == "runtime"


def test_secrets_reach_neither_the_repository_nor_the_image() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/.env", "/secrets/", "/deploy/config/"} <= set(ignored)
    kept_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in kept_out if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert not [rule for rule in rules if rule.startswith("!") and re.search(r"secret|env|deploy|\*", rule)]
    assert {".env", ".env.*", "secrets/"} <= set(rules)
    let_in = {rule.strip("!/") for rule in rules if rule.startswith("!")}
    assert let_in == {*_packages(), "pyproject.toml", "README.md", "LICENSE", *_locks()}


def _packages() -> set[str]:
    return {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests", "scripts"}


def _locks() -> set[str]:
    return {path.name for path in ROOT.glob("requirements-*.lock")}

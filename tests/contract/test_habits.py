"""What those who come after rely on: hooks, workflows, forms and CONTRIBUTING, against the project they speak of."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
HOOKS = ROOT / ".pre-commit-config.yaml"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PREFLIGHT = (ROOT / "scripts" / "preflight.py").read_text(encoding="utf-8")
# what a runner is, in the words of scripts/preflight.py
RUNNERS = {"ubuntu-24.04": "linux x86_64", "ubuntu-24.04-arm": "linux aarch64", "macos-15": "darwin arm64"}
WITHOUT_RUNNER = {"darwin x86_64"}
MOST_LINES = 300
# longer than they should be since before there was the rule; whoever changes one of them much splits it
OLDER = frozenset({
    "app/indexing.py", "app/present.py", "app/present_explain.py", "domain/markdown/scanner.py",
    "scripts/e2e_compose.py", "store/documents.py", "tests/acceptance/test_mcp_stdio.py",
    "tests/integration/test_backup.py", "tests/integration/test_doctor_embeddings.py",
    "tests/integration/test_doctor_index.py", "tests/integration/test_embedding_client.py",
    "tests/integration/test_embedding_outage.py", "tests/integration/test_enumeration.py",
    "tests/integration/test_explain.py", "tests/integration/test_index_outcomes.py",
    "tests/integration/test_index_run.py", "tests/integration/test_index_vectors.py",
    "tests/integration/test_nearest.py", "tests/integration/test_queue_jobs.py",
    "tests/integration/test_schedules.py", "tests/integration/test_store_vectors.py",
    "tests/integration/test_upgrade.py", "tests/integration/test_watching.py", "tests/support/embedding_server.py",
    "tests/unit/test_batching.py", "tests/unit/test_config.py", "tests/unit/test_page_embedding.py",
    "tests/unit/test_plan.py", "tests/unit/test_walk.py",
})  # fmt: skip


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def targets() -> set[str]:
    """What the Makefile can make, apart from files."""
    return set(re.findall(r"^([a-z][a-z0-9-]*):(?!=)", MAKEFILE, re.MULTILINE))


def steps(workflow: Any) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


def minor(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def preflights(name: str) -> Any:
    found = re.search(rf"^{name} = (\(.*?\))", PREFLIGHT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return eval(found[1], {})


def test_there_are_hooks_workflows_and_forms() -> None:
    assert {path.name for path in WORKFLOWS} == {"release.yml", "test.yml"}
    assert {path.name for path in FORMS} == {"fault.yml", "wish.yml"}
    assert {name for name in targets() if f"make {name}" in MAKEFILE} >= {"test", "faults", "soak", "promises"}
    assert (GITHUB / "pull_request_template.md").is_file()
    assert read(GITHUB / "dependabot.yml")["version"] == 2
    assert read(GITHUB / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": False}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_a_job_says_what_it_needs_more(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job.get("timeout-minutes") or "uses" in job for job in workflow["jobs"].values())
    writing = {name for name, job in workflow["jobs"].items() if "write" in job.get("permissions", {}).values()}
    assert writing == ({"wheel", "image"} if path.name == "release.yml" else set())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_keeps_no_token(path: Path) -> None:
    used = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line and "./." not in line]
    assert used
    assert [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)] == []
    fetched = [step for step in steps(read(path)) if step.get("uses", "").startswith("actions/checkout@")]
    assert [step for step in fetched if step["with"]["persist-credentials"] is not False] == []


def test_one_action_has_one_version() -> None:
    found = [re.findall(r"uses: ([\w/-]+)@(\S+)", path.read_text(encoding="utf-8")) for path in WORKFLOWS]
    pinned = {pair for pairs in found for pair in pairs}
    assert len({name for name, _ in pinned}) == len(pinned)


@pytest.mark.parametrize("path", [*WORKFLOWS, GITHUB / "pull_request_template.md"], ids=lambda path: path.name)
def test_what_is_made_there_can_be_made(path: Path) -> None:
    called = re.findall(r"(?:run: |`|^\s*)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert called
    assert set(called) <= targets()


def test_pull_requests_and_releases_run_all_that_there_is() -> None:
    workflow = read(ROOT / ".github/workflows/test.yml")
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test PYTHON=python"]
    released = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert released.pop("test") == {"uses": "./.github/workflows/test.yml"}
    assert {job["needs"] for job in released.values()} == {"test"}


def test_the_matrix_is_what_is_promised() -> None:
    (job,) = read(ROOT / ".github/workflows/test.yml")["jobs"].values()
    matrix = job["strategy"]["matrix"]
    oldest, newest = preflights("OLDEST"), preflights("NEWEST")
    promised = [(oldest[0], number) for number in range(oldest[1], newest[1] + 1)]
    assert [minor(number) for number in matrix["python"]] == promised
    classifiers = PYPROJECT["project"]["classifiers"]
    told = [
        found[1] for one in classifiers if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one))
    ]
    assert told == matrix["python"]
    assert PYPROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"
    assert {RUNNERS[system] for system in matrix["system"]} | WITHOUT_RUNNER == set(preflights("PLATFORMS"))
    for system, word in (("Linux", "linux"), ("MacOS", "darwin")):
        assert any(one.endswith(system) for one in classifiers)
        assert any(RUNNERS[one].startswith(word) for one in matrix["system"])


def test_the_image_is_made_for_both_processors_and_is_the_one_of_compose() -> None:
    (build,) = (step for step in steps(read(ROOT / ".github/workflows/release.yml")) if step.get("id") == "build")
    linux = {name.split()[1] for name in preflights("PLATFORMS") if name.startswith("linux")}
    docker = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
    assert set(build["with"]["platforms"].split(",")) == {docker[machine] for machine in linux}
    assert build["with"]["context"] == "." and "file" not in build["with"]
    assert (build["with"]["sbom"], build["with"]["provenance"]) == (True, "mode=max")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_can_be_filled_in(path: Path) -> None:
    form = read(path)
    assert all(form[key] for key in ("name", "description", "labels"))
    names = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(names)) == len(names) > 1
    for part in form["body"]:
        assert part["type"] in ("markdown", "textarea", "input", "checkboxes", "dropdown")
        assert part["attributes"].get("label") or part["type"] in ("markdown", "checkboxes")
    assert any(part.get("validations", {}).get("required") for part in form["body"])
    for name in re.findall(r"[\w/-]+\.md", path.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), name


def test_hooks_are_the_pinned_tools_of_this_environment() -> None:
    (repository,) = read(HOOKS)["repos"]
    assert repository["repo"] == "local"
    entries = {hook["id"]: hook["entry"] for hook in repository["hooks"]}
    assert list(entries) == ["format", "lint", "lock", "imports", "types", "architecture", "promises"]
    assert all(hook["language"] == "system" for hook in repository["hooks"])
    for entry in entries.values():
        program, *arguments = entry.split()
        assert program in (".venv/bin/python", ".venv/bin/lint-imports")
        assert all((ROOT / argument).is_file() for argument in arguments if argument.endswith(".py"))


def test_security_says_how_to_report_and_what_is_promised() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for said in (
        "## Report a problem",
        "do not open an issue",
        "## Which versions",
        "## What is in scope",
        "docs/promises.md",
    ):
        assert said in text
    assert "SECURITY.md" in CONTRIBUTING
    assert "SECURITY.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_contributing_names_every_folder_and_every_way_to_check() -> None:
    packages = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert [name for name in packages if f"| `{name}/` |" not in CONTRIBUTING] == []
    assert [path.name for path in sorted((ROOT / "tests").iterdir())
            if path.is_dir() and path.name[0] not in "_." and f"`{path.name}`" not in CONTRIBUTING] == []  # fmt: skip
    own = targets() - {"help", "setup", "demo", "clean", "moved", "compose-init", "bench"}
    assert [name for name in sorted(own) if f"make {name}" not in CONTRIBUTING] == []
    assert f"{MOST_LINES} lines" in CONTRIBUTING


def test_no_file_becomes_overlong() -> None:
    folders = [*PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], "tests", "bench", "scripts"]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines())
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES and name not in OLDER} == {}

"""`--json` of every verb: one object with `status`, or with `error`; every field of it is in docs/reference-json.md."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from cli.main import run
from cli.verbs import ALL_VERBS
from cli.verbs import app as root_app
from store.failure_port import FailureRecord
from store.state import SqliteStateStore
from tests.support.command_line import write_files
from tests.support.scratch import scratch_directory

PAGE = (Path(__file__).parents[2] / "docs" / "reference-json.md").read_text(encoding="utf-8")
# in the order in which they are run, on one base; what changes it stands last
ASKED = (
    "status", "status --exit-code", "stats", "sources", "sources --all", "sources --coverage", "search fox",
    "search nothingofthiskind", "search --full --root docs fox", "show docs/a.md", "show docs/a.md#0",
    "show --lines 1-2 docs/a.md", "match fox", "match --count fox", "match --explain fox", "match nothingofthiskind",
    "words", "words --count", "explain docs/a.md", "explain docs/a.md --query fox", "explain docs/none.md", "failures",
    "runs", "runs list", "runs show 1", "runs show 1 --changes", "runs pause 1", "runs resume 1", "runs cancel 1",
    "schedules", "notify test", "config check", "config show", "config trust", "config init sub", "verify", "doctor",
    "upgrade", "index --dry-run", "index", "runs retry 1", "runs approve 1", "ignore docs/bad.md",
    "ignore --undo docs/bad.md", "retry --all", "retry docs/none.md", "rebuild", "compact", "backup a.tar",
    "restore --force a.tar", "rm docs/b.md", "rm --purge docs/c.md", "eval run --collection questions", "eval recall",
    "reset", "reset --force", "show docs/a.md", "search fox", "match fox",
)  # fmt: skip
NDJSON = ("watch",)  # an object a line, as it happens: tests/acceptance/test_cli_watch.py
DONE_HERE = {"runs retry 1": "index"}  # there is no service to do it
WITH_FILE = ("eval",)  # --json takes a file; `-` is standard output
CONFIGURATION = """
knowledge:
  identity: base
  paths: [docs]
  notify:
    command: ['true']
  schedules:
    - {name: nightly, cron: '0 1 * * *'}
"""


def write_collection(folder: Path) -> None:
    write_files(
        folder,
        {
            "documents.jsonl": '{"id": "1", "text": "the quick fox"}\n{"id": "2", "text": "lazy dogs"}\n',
            "queries.tsv": "q\tfox\n",
            "qrels.tsv": "q\t1\t1\n",
        },
    )


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, tuple[int, str]]]:
    """Status and standard output by what was asked; asked for a second time with a number behind it."""
    with scratch_directory() as place, pytest.MonkeyPatch.context() as patch:
        write_files(place / "docs", {f"{name}.md": f"# {name}\n\nthe quick fox of {name}\n" for name in "abc"})
        write_collection(place / "questions")
        (place / "sub").mkdir()
        (place / "knowledge.yaml").write_text(CONFIGURATION, encoding="utf-8")
        patch.chdir(place)
        patch.setenv("HOME", str(place))
        yield dict(_asked(place))


def _asked(place: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    from io import StringIO

    seen: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for asked in ("config trust", "index", *ASKED):
            out, err = StringIO(), StringIO()
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", err)
            if asked.startswith("ignore docs"):
                _record_failure(place)
            flags = ["--json", "-"] if asked.startswith(WITH_FILE) else ["--json"]
            status = run([*asked.split(" "), *flags])
            name = f"{asked} (2)" if asked in seen else asked
            seen.add(asked)
            yield name, (status, out.getvalue())


def _record_failure(place: Path) -> None:
    with closing(SqliteStateStore(place / "knowledge" / "base" / "state.db")) as state:
        state.record_failures([FailureRecord("docs/bad.md", "unreadable", "denied", 1, 1, 1)])


def commands() -> Iterator[tuple[str, Any]]:
    group: Any = get_group(root_app)
    for verb in ALL_VERBS:
        command = group.get_command(None, verb)
        below = getattr(command, "commands", {"": command})
        yield from ((f"{verb} {name}".strip(), one) for name, one in below.items())


def test_every_verb_with_json_is_asked() -> None:
    with_json = [words for words, command in commands() if any("--json" in one.opts for one in command.params)]
    assert not [
        words for words in with_json if not any(f"{asked} ".startswith(f"{words} ") for asked in (*ASKED, *NDJSON))
    ]


@pytest.mark.parametrize("asked", [*dict.fromkeys(ASKED), "search fox (2)", "show docs/a.md (2)"])
def test_an_answer_is_one_object_with_a_status(asked: str, answers: dict[str, tuple[int, str]]) -> None:
    status, out = answers[asked]
    value = json.loads(out)
    assert isinstance(value, dict)
    if "status" in value:
        assert isinstance(value["status"], str)
        assert value["status"]
    else:
        assert set(value) == {"error"}
        assert set(value["error"]) == {"code", "message", "hint"}
        assert status not in (0, 3)
    if "exit_status" in value and value["exit_status"] is not None and "verdict" not in value:
        assert value["exit_status"] == status or asked.startswith("runs ")


def sections() -> dict[str, str]:
    """By heading; what stands in front of the first verb is said of all."""
    found = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def section_of(asked: str) -> str:
    words = (DONE_HERE.get(asked) or asked).split()
    names = (" ".join(words[:2]), words[0])
    for name in names:
        told = [text for heading, text in sections().items() if f"`{name}`" in heading]
        if told:
            return "".join(told)
    raise AssertionError(f"no section of docs/reference-json.md is about {asked}")


@pytest.mark.parametrize("asked", [*dict.fromkeys(ASKED), "search fox (2)"])
def test_every_field_is_documented(asked: str, answers: dict[str, tuple[int, str]]) -> None:
    told = section_of(asked) + PAGE.partition("\n## `search`")[0]
    value = json.loads(answers[asked][1])
    assert not [key for key in value if not re.search(rf"[`\"]{key}[`\".\[]", told)]

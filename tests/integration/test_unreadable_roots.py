"""A root of which no file can be read: one error says who cannot read what, and what mends it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.discovery import Located
from app.doctor_roots import check_roots
from app.present_index import report_json, report_text
from app.present_unreadable import unreadable_hint, unreadable_message
from app.unreadable_roots import UnreadableRoot, unreadable_root
from domain.settings import EXTENSIONS, RootSettings
from tests.support.runs import Base, base_in
from tests.support.scratch import scratch_directory
from tests.support.trees import NOBODY, as_nobody, give_to_nobody, make_tree, mode
from tests.support.valkey import serving

pytestmark = pytest.mark.redis
IS_ROOT = os.geteuid() == 0
ROOT = UnreadableRoot("notes", "/corpus", "/corpus/a.md", 10001, 10001, 1000, 1001, 0o600, in_container=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the user nobody may go, too."""
    with scratch_directory() as made:
        yield made


@pytest.fixture
def docs(folder: Path) -> Path:
    return make_tree(folder / "docs", {"a.md": "# A\n\ntext\n", "sub/b.md": "# B\n\ntext\n", "c.bin": "x"})


@pytest.fixture
def base(folder: Path) -> Base:
    """Given to nobody; what nobody may not import is imported."""
    first = make_tree(folder / "first", {"a.md": "# A\n"})
    base_in(folder / "before").index(first)
    made = base_in(folder)
    made.settings.home.mkdir(exist_ok=True)
    give_to_nobody(made.settings.home)
    return made


@pytest.fixture
def queue_url(folder: Path) -> Iterator[str]:
    with serving(folder) as socket:
        yield f"unix://{socket}"


def told(base: Base, docs: Path, queue_url: str) -> tuple[str, str, int]:
    """Of a run: its words, its JSON and its exit status."""
    report = base.index(docs, queue_url=queue_url)
    located = Located("named", None, base.settings.home, ())
    shown = report_json(report, located, base.settings)
    return report_text(report, located, base.settings), json.dumps(shown), report.exit_status


def shut(docs: Path) -> None:
    for path in docs.rglob("*.md"):
        path.chmod(0o600 if IS_ROOT else 0)


def test_files_that_nobody_may_read_are_one_error(base: Base, docs: Path, queue_url: str) -> None:
    """Issue 5, 8: who, what, and what to do about it."""
    shut(docs)
    words, shown, exit_status = as_nobody(lambda: told(base, docs, queue_url))
    assert exit_status == 3
    first, hint = words.splitlines()[:2]
    who = f"user {NOBODY}, group {NOBODY}" if IS_ROOT else f"user {os.geteuid()}"
    assert first.startswith(f"error: no file of docs can be read: {who}")
    assert str(docs / "a.md") in first
    assert str(docs) in hint or "KNOWLEDGE_UID" in hint
    assert words.count("error:") == 1
    (root,) = json.loads(shown)["unreadable_roots"]
    assert (root["root"], root["refused"]) == ("docs", str(docs / "a.md"))
    assert first == f"error: {root['message']}"


def test_it_is_said_again_while_the_files_are_left_alone(base: Base, docs: Path, queue_url: str) -> None:
    shut(docs)
    as_nobody(lambda: told(base, docs, queue_url))
    words, _, exit_status = as_nobody(lambda: told(base, docs, queue_url))
    assert exit_status == 3
    assert words.startswith("error: no file of docs can be read")


def test_a_folder_that_may_not_be_opened_is_the_same_error(base: Base, docs: Path, queue_url: str) -> None:
    """And the folder is not told a second time."""
    with mode(docs, 0o700 if IS_ROOT else 0):
        words, _, exit_status = as_nobody(lambda: told(base, docs, queue_url))
    assert exit_status == 3
    assert words.startswith("error: no file of docs can be read")
    assert f"may not read {docs} (" in words
    assert "not read: docs/" not in words


def test_one_file_that_can_be_read_makes_it_a_failure_like_any(base: Base, docs: Path, queue_url: str) -> None:
    shut(docs)
    (docs / "sub" / "b.md").chmod(0o644)
    words, shown, exit_status = as_nobody(lambda: told(base, docs, queue_url))
    assert exit_status == 3
    assert "error:" not in words
    assert "failed, cannot be read: docs/a.md" in words
    assert json.loads(shown)["unreadable_roots"] == []


def test_the_doctor_says_the_same(base: Base, docs: Path) -> None:
    shut(docs)
    settings = replace(base.settings, roots=(RootSettings(docs),))
    (check,) = as_nobody(lambda: list(check_roots(settings, ())))
    assert "no file of docs can be read" in str(check)


def test_an_empty_root_and_a_readable_one_are_not_told(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (docs, tmp_path / "empty", tmp_path / "nowhere"):
        assert unreadable_root("r", path, EXTENSIONS) is None


@pytest.mark.parametrize(
    ("root", "hint"),
    [
        (ROOT, "set KNOWLEDGE_UID=1000 and KNOWLEDGE_GID=1001 in .env"),
        (replace(ROOT, in_container=False), "run it as user 1000"),
        (replace(ROOT, owner_uid=0, owner_gid=0), "never root"),
        (replace(ROOT, owner_uid=10001), "chmod -R u+rX /corpus"),
    ],
)
def test_the_hint_fits_the_place(root: UnreadableRoot, hint: str) -> None:
    assert hint in unreadable_hint(root)


def test_the_message_says_who_and_what() -> None:
    assert unreadable_message(ROOT) == (
        "no file of notes can be read: user 10001, group 10001, may not read /corpus/a.md (owner 1000:1001, mode 0600)"
    )


def test_a_hostile_name_stays_on_its_line() -> None:
    assert "\n" not in unreadable_message(replace(ROOT, place="/corpus/a\nerror: b\x1b[2J.md"))

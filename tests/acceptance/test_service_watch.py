"""Changes are followed by a service itself, and by `knowledge watch` beside one (S0-71..74, R11)."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from store.port import Visibility
from store.sqlite import SqliteStore
from store.state import SqliteStateStore
from tests.support.service import Service, many_files, service

FILES = 20


def _keys(it: Service) -> set[str]:
    with closing(SqliteStore(it.layout.database, base_id=None)) as store:
        return {document.key for document in store.reader().documents("docs/", visibility=Visibility.everything())}


def _triggers(it: Service) -> list[str]:
    with closing(SqliteStateStore(it.layout.state, read_only=True)) as state:
        return [run.trigger for run in state.runs()]


def test_a_root_with_watch_is_followed_by_the_scheduler(tmp_path: Path) -> None:
    with service(tmp_path, files=many_files(FILES)) as it:
        configuration = tmp_path / "knowledge.yaml"
        text = configuration.read_text(encoding="utf-8")
        configuration.write_text(text.replace("[docs/]", "[{path: docs/, watch: true}]"), encoding="utf-8")
        it.start_all()
        it.ended(it.first_run())
        it.wait_until(lambda: "watch_watching" in it.of("scheduler")[0].said())
        (tmp_path / "docs" / "new.md").write_text("# New\n\nnew words\n", encoding="utf-8")
        (tmp_path / "docs" / "part-00" / "file-00000.md").unlink()
        wanted = {"docs/new.md", *(f"docs/{name}" for name in many_files(FILES))} - {"docs/part-00/file-00000.md"}
        it.wait_until(lambda: _keys(it) == wanted)
        assert "watch" in _triggers(it)


def test_a_watch_on_a_command_line_hands_its_passes_to_the_service(tmp_path: Path) -> None:
    with service(tmp_path, files=many_files(FILES)) as it:
        it.start_all()
        it.ended(it.first_run())
        with subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "cli.main",
                "watch",
                "--no-initial",
                "--json",
                "--debounce",
                "100ms",
                "--config",
                "knowledge.yaml",
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        ) as watch:
            assert watch.stdout is not None
            assert json.loads(watch.stdout.readline())["event"] == "watching"
            (tmp_path / "docs" / "new.md").write_text("# New\n\nnew words\n", encoding="utf-8")
            told = json.loads(watch.stdout.readline())
            assert (told["event"], told["status"], told["counts"]["added"]) == ("pass", "done", 1)
            assert len(_keys(it)) == FILES + 1
            assert _triggers(it)[0] == "watch"
            watch.terminate()
            assert watch.wait(20) == 0

"""Held removals are let go by their list: exactly what was shown, by its digest, each file looked at again (R34)."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from app.approving import held_list, require_approvable, why_not_approvable
from app.index_request import IndexRequest
from app.indexing import run_index
from app.progress import RunProgress
from app.runs import changes_of, shown_run, shown_runs
from domain.errors import NotFoundError, RefusedError
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import make_tree

pytestmark = pytest.mark.redis

FILES, GONE = 100, 60


def name(number: int) -> str:
    return f"{number:03}.md"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", {name(number): f"# Page {number}\n\nword{number}\n" for number in range(FILES)})


@pytest.fixture
def base(tmp_path: Path, docs: Path) -> Iterator[Base]:
    """A base whose newest run, the second, holds the removal of sixty documents."""
    made = base_in(tmp_path)
    with nothing_left(made):
        made.index(docs)
        made.settle()
        for number in range(GONE):
            (docs / name(number)).unlink()
        assert made.index().exit_status == 3
        yield made


def approve(base: Base, run_id: int, digest: str = "", *roots: Path) -> dict[str, int]:
    request = IndexRequest(approve=run_id, digest=digest, paths=roots, worker_processes=0)
    return run_index(base.settings, request, RunProgress()).counts


def why_not(base: Base, run_id: int) -> str:
    with base.state() as state:
        run = state.run(run_id)
        assert run is not None
        return why_not_approvable(state, run)


def test_the_list_is_shown_and_named_by_its_digest(base: Base) -> None:
    shown = shown_run(base.settings, 2)
    assert shown.run.state == "needs_approval"
    assert shown.held is not None
    assert (shown.held.count, shown.held.first[:2]) == (GONE, ("docs/000.md", "docs/001.md"))
    listed = "".join(f"docs/{name(number)}\0gone\n" for number in range(GONE))
    assert shown.held.digest == sha256(listed.encode()).hexdigest()
    with base.state() as state:
        assert state.runs(1)[0].state == "partial"


def test_exactly_the_list_goes_and_what_is_back_stays(base: Base, docs: Path) -> None:
    """A file that is back, one that was removed later, and the rest: only what was shown and is still gone goes."""
    digest = held_list_of(base)
    make_tree(docs, {name(3): "# Back\n"})
    (docs / name(90)).unlink()  # gone since: on nobody's list
    assert approve(base, 2, digest) == {"removed": GONE - 1}
    assert base.last_run()[:2] == ("done", "")
    assert len(base.stored_keys()) == FILES - (GONE - 1)
    assert {"docs/003.md", "docs/090.md"} <= set(base.stored_keys())
    assert [one.run.state for one in shown_runs(base.settings, 2)] == ["done", "partial"]
    with base.state() as state:
        gone = list(changes_of(state, 3, "removed"))
        assert gone == [f"docs/{name(number)}" for number in range(GONE) if number != 3]
        with pytest.raises(RefusedError, match="run 3 has been asked to let them go"):
            require_approvable(state, 2, "")


def held_list_of(base: Base) -> str:
    with base.state() as state:
        return held_list(state, 2).digest


def test_another_list_is_refused(base: Base) -> None:
    with pytest.raises(RefusedError, match="the list of run 2 is another one"):
        approve(base, 2, "0" * 64)
    assert len(base.stored_keys()) == FILES
    assert base.last_run()[:2] == ("failed", "refused")
    with base.state() as state:
        run, held = require_approvable(state, 2, held_list_of(base)[:12])
        assert (run.id, held.count) == (2, GONE)


def test_a_later_look_at_the_root_has_the_list_that_counts(base: Base) -> None:
    base.index()
    assert why_not(base, 2) == "run 3 has looked at these roots since, and has a list of its own"
    assert [one.run.state for one in shown_runs(base.settings, 2)] == ["needs_approval", "partial"]
    assert approve(base, 3) == {"removed": GONE}


def test_an_approval_that_was_cut_short_can_be_given_again(base: Base) -> None:
    with base.state() as state:
        run = state.runs(1)[0]
        cut = state.begin_beside(run, floor_generation=0)
        state.record_plan(cut.id, {"approve": 2})
    assert why_not(base, 2) == ""
    assert approve(base, 2) == {"removed": GONE}


def test_nothing_goes_from_a_root_that_shows_no_file(base: Base, docs: Path) -> None:
    """P8: between the run and its approval the folder was unmounted."""
    docs.rename(docs.with_name("elsewhere"))
    docs.mkdir()
    assert approve(base, 2) == {}
    assert base.last_run()[:2] == ("partial", "source_empty")
    assert len(base.stored_keys()) == FILES


def test_there_is_nothing_to_approve_in_any_other_run(base: Base) -> None:
    with base.state() as state:
        with pytest.raises(RefusedError, match="it holds no removals"):
            require_approvable(state, 1, "")
        with pytest.raises(NotFoundError, match="there is no run 77"):
            require_approvable(state, 77, "")


def test_a_root_that_could_not_be_read_is_on_no_list(base: Base, docs: Path, tmp_path: Path) -> None:
    """Only what the guard has held may be approved."""
    docs.rename(tmp_path / "elsewhere")
    docs.mkdir()
    assert base.index().removals.cause == "source_empty"
    assert why_not(base, 3) == "it holds no removals"
    with base.state() as state:
        assert held_list(state, 3).count == 0


def test_removals_of_a_run_are_among_its_changes(base: Base, docs: Path) -> None:
    """Removed and moved documents, page by page; a moved one is added at its new path."""
    base.index(allow_mass_delete=True)
    (docs / name(70)).rename(docs / "moved.md")
    (docs / name(71)).unlink()
    base.settle()
    base.index()
    with base.state() as state:
        run_id = state.runs(1)[0].id
        told = {change: list(changes_of(state, run_id, change)) for change in ("added", "moved", "removed", "updated")}
    assert told == {"added": ["docs/moved.md"], "moved": ["docs/070.md"], "removed": ["docs/071.md"], "updated": []}

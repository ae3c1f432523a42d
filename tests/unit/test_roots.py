"""Which roots a run is about (R20, R29): configured, recorded, or named."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.roots import RootScope, scopes_of_run
from domain.errors import UsageError
from domain.settings import RootSettings, Settings
from store.state_port import RootRecord
from tests.support.scratch import scratch_directory
from tests.support.trees import as_nobody, make_tree, mode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", {"a.md": "x", "b.md": "x", "sub/c.md": "x", "sub/deep/d.md": "x"})


def settings_of(tmp_path: Path, *roots: RootSettings) -> Settings:
    return Settings(
        identity="default", home=tmp_path / "home", config_path=None, configured=bool(roots), roots=tuple(roots)
    )


def scopes(settings: Settings, recorded: Sequence[RootRecord], *paths: Path) -> tuple[RootScope, ...]:
    return scopes_of_run(settings, recorded, paths)


def one(settings: Settings, recorded: Sequence[RootRecord], *paths: Path) -> RootScope:
    (scope,) = scopes(settings, recorded, *paths)
    return scope


def test_a_named_folder_becomes_a_root(tmp_path: Path, root: Path) -> None:
    scope = one(settings_of(tmp_path), [], root)
    assert scope.record == RootRecord("docs", str(root))
    assert scope.is_full
    assert scope.prefix == "docs/"


def test_a_name_is_made_unique_and_stays_as_it_was_recorded(tmp_path: Path, root: Path) -> None:
    """R20: fixed once in state.db."""
    other = make_tree(tmp_path / "other" / "docs", {"a.md": "x"})
    taken = RootRecord("docs", str(other))
    assert one(settings_of(tmp_path), [taken], root).record.name == "docs_2"
    recorded = RootRecord("handbook", str(root))
    assert one(settings_of(tmp_path), [recorded], root).record.name == "handbook"
    configured = settings_of(tmp_path, RootSettings(path=root, name="renamed"))
    assert one(configured, [recorded]).record.name == "handbook"
    assert one(configured, []).record.name == "renamed"


def test_without_paths_every_root_is_meant(tmp_path: Path, root: Path) -> None:
    """R29: the recorded ones without a configuration, the configured ones with one, in key order."""
    other = make_tree(tmp_path / "other", {"a.md": "x"})
    recorded = [RootRecord("zoo", str(other)), RootRecord("docs", str(root))]
    assert [scope.record.name for scope in scopes(settings_of(tmp_path), recorded)] == ["docs", "zoo"]
    configured = settings_of(tmp_path, RootSettings(path=root))
    assert [scope.record.name for scope in scopes(configured, recorded)] == ["docs"]


def test_roots_come_in_the_order_of_their_keys(tmp_path: Path) -> None:
    names = ["docs", "docs-2", "docs.old", "docs 3"]
    recorded = [RootRecord(name, str(tmp_path / name)) for name in names]
    prefixes = [scope.prefix for scope in scopes(settings_of(tmp_path), recorded)]
    assert prefixes == sorted(prefixes, key=str.encode)


def test_nothing_named_and_nothing_known_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to index"):
        scopes(settings_of(tmp_path), [])


def test_a_part_of_a_root_is_no_full_run(tmp_path: Path, root: Path) -> None:
    """S0-31, R29: a path inside a root never reconciles it."""
    recorded = [RootRecord("docs", str(root))]
    folder = one(settings_of(tmp_path), recorded, root / "sub")
    assert (folder.start, folder.files, folder.is_full, folder.is_gone) == ("sub/", (), False, False)
    file = one(settings_of(tmp_path), recorded, root / "sub" / "c.md")
    assert (file.start, file.files, file.is_full, file.is_gone) == ("", ("sub/c.md",), False, False)


def test_a_named_path_that_is_gone(tmp_path: Path, root: Path) -> None:
    """R29: it alone may be removed; not when the whole root is gone (P8)."""
    recorded = [RootRecord("docs", str(root))]
    for name in ("no.md", "sub/no/where.md", "a.md/below.md"):
        scope = one(settings_of(tmp_path), recorded, root / name)
        assert (scope.files, scope.is_gone, scope.is_full) == ((name,), True, False)
    root.rename(tmp_path / "unmounted")
    assert not one(settings_of(tmp_path), recorded, root / "a.md").is_gone


def test_what_may_not_be_looked_at_is_not_gone(clean_environment: Path) -> None:
    """P8: a folder above that is closed hides a file, it does not remove it."""
    with scratch_directory() as folder:
        root = make_tree(folder / "docs", {"closed/a.md": "x"})
        recorded = [RootRecord("docs", str(root))]
        with mode(root / "closed", 0):
            scope = as_nobody(lambda: one(settings_of(folder), recorded, root / "closed" / "a.md"))
    assert scope.files == ("closed/a.md",)
    assert not scope.is_gone


def test_a_whole_root_swallows_its_parts(tmp_path: Path, root: Path) -> None:
    """Each file is planned once, in whatever order the paths are named."""
    for recorded in ([], [RootRecord("docs", str(root))]):
        for paths in ([root, root / "a.md"], [root / "sub", root / "no.md", root], [root, root / "sub", root]):
            if not recorded and paths[0] != root:
                continue
            assert one(settings_of(tmp_path), recorded, *paths).is_full


def test_named_files_of_one_root_are_one_scope(tmp_path: Path, root: Path) -> None:
    recorded = [RootRecord("docs", str(root))]
    scope = one(settings_of(tmp_path), recorded, root / "b.md", root / "a.md", root / "b.md")
    assert scope.files == ("a.md", "b.md")
    assert not scope.is_full


def test_a_single_file_registers_its_folder_with_itself_only(tmp_path: Path, root: Path) -> None:
    """R20."""
    scope = one(settings_of(tmp_path), [], root / "a.md")
    assert scope.record == RootRecord("docs", str(root), ("a.md",))
    assert scope.is_full
    again = one(settings_of(tmp_path), [scope.record])
    assert again.files == ("a.md",)
    assert again.is_full


def test_more_single_files_join_the_ones_before(tmp_path: Path, root: Path) -> None:
    make_tree(root, {"z.md": "x"})
    recorded = RootRecord("docs", str(root), ("z.md",))
    scope = one(settings_of(tmp_path), [recorded], root / "a.md", root / "b.md")
    assert scope.record.single_files == ("a.md", "b.md", "z.md")
    assert scope.files == ("a.md", "b.md")
    assert not scope.is_full
    fresh = one(settings_of(tmp_path), [], root / "a.md", root / "b.md", root / "z.md")
    assert fresh.record.single_files == fresh.files == ("a.md", "b.md", "z.md")


def test_the_folder_of_single_files_becomes_a_whole_root(tmp_path: Path, root: Path) -> None:
    recorded = RootRecord("docs", str(root), ("a.md",))
    scope = one(settings_of(tmp_path), [recorded], root)
    assert scope.record == replace(recorded, single_files=())
    assert scope.is_full
    configured = one(settings_of(tmp_path, RootSettings(path=root)), [recorded])
    assert configured.record == replace(recorded, single_files=())
    assert not configured.files


def test_a_path_outside_a_configuration_is_a_usage_error(tmp_path: Path, root: Path) -> None:
    """R29."""
    outside = make_tree(tmp_path / "outside", {"a.md": "x"})
    for path in (outside, outside / "a.md", tmp_path):
        with pytest.raises(UsageError, match="outside every root"):
            scopes(settings_of(tmp_path, RootSettings(path=root)), [], path)


def test_a_path_that_is_nowhere_is_a_usage_error(tmp_path: Path, root: Path) -> None:
    with pytest.raises(UsageError, match="there is no file or folder"):
        scopes(settings_of(tmp_path), [], tmp_path / "nowhere")


def test_overlapping_roots_are_refused(tmp_path: Path, root: Path) -> None:
    """R20: one file, one key."""
    recorded = [RootRecord("sub", str(root / "sub"))]
    with pytest.raises(UsageError, match="lies in"):
        scopes(settings_of(tmp_path), recorded, root)
    with pytest.raises(UsageError, match="lies in"):
        scopes(settings_of(tmp_path), [], root / "sub", root)
    similar = make_tree(tmp_path / "docs-2", {"a.md": "x"})
    assert len(scopes(settings_of(tmp_path), [], root, similar)) == 2


@pytest.mark.parametrize("relative", ["", "spool"])
def test_the_index_itself_is_no_root(tmp_path: Path, relative: str) -> None:
    (tmp_path / "home" / relative).mkdir(parents=True)
    with pytest.raises(UsageError, match="own directory"):
        scopes(settings_of(tmp_path), [], tmp_path / "home" / relative)


def test_the_file_system_is_no_root(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="root of the file system"):
        scopes(settings_of(tmp_path), [], Path(tmp_path.anchor))


def test_a_folder_is_the_same_root_over_a_link(tmp_path: Path, root: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    assert one(settings_of(tmp_path), [], link).record == RootRecord("docs", str(root))
    recorded = [RootRecord("docs", str(root))]
    assert one(settings_of(tmp_path), recorded, link / "a.md").files == ("a.md",)
    assert one(settings_of(tmp_path, RootSettings(path=link)), recorded).record == recorded[0]


def test_a_named_link_is_looked_at_and_not_followed(tmp_path: Path, root: Path) -> None:
    """S0-17."""
    make_tree(tmp_path / "outside", {"secret.md": "x"})
    (root / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    scope = one(settings_of(tmp_path), [RootRecord("docs", str(root))], root / "link.md")
    assert scope.files == ("link.md",)
    assert not scope.is_gone


def test_a_name_that_is_no_utf8_can_be_no_root(tmp_path: Path, root: Path) -> None:
    """T1: and the message can be shown."""
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    bad.mkdir()
    (bad / "a.md").touch()
    below = Path(os.fsdecode(os.fsencode(root) + b"/bad\xff"))
    below.mkdir()
    recorded = [RootRecord("docs", str(root))]
    for known, path in (([], bad), ([], bad / "a.md"), (recorded, below)):
        with pytest.raises(UsageError, match="UTF-8") as refused:
            scopes(settings_of(tmp_path), known, path)
        assert refused.value.message.encode()
    with pytest.raises(UsageError, match="UTF-8"):
        scopes(settings_of(tmp_path, RootSettings(path=bad)), [])

from pathlib import Path

import pytest

from app.places import absolute, exists, is_file, is_folder, real


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("a", "/w/a"),
        ("a/../b/", "/w/b"),
        ("../x", "/x"),
        ("/a", "/a"),
        ("~", "/me"),
        ("~/a", "/me/a"),
        ("~other/a", "/w/~other/a"),
        ("", "/w"),
    ],
)
def test_paths_as_written(written: str, path: str) -> None:
    assert absolute(written, below=Path("/w"), user_home="/me") == Path(path)


def test_without_a_home_directory_the_sign_is_a_name() -> None:
    assert absolute("~/a", below=Path("/w"), user_home="") == Path("/w/~/a")


def test_what_cannot_be_seen_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").touch()
    unseen = [
        tmp_path / "circle",
        tmp_path / "absent",
        tmp_path / ("x" * 300),
        Path("a\0b"),
        tmp_path / "file" / "x",
    ]
    assert not any(exists(path) or is_file(path) or is_folder(path) for path in unseen)
    assert is_file(tmp_path / "file")
    assert is_folder(tmp_path)
    assert exists(tmp_path / "file")
    assert real(tmp_path / "circle") == tmp_path / "circle"

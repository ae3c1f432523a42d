"""Which index a command means."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.discovery import Located, locate
from domain.errors import ConfigurationError, UsageError

BLOCK = "knowledge: {enabled: true}\n"


def store(folder: Path, identity: str = "default") -> Path:
    home = folder / "knowledge" / identity
    home.mkdir(parents=True)
    for name in ("knowledge.db", "knowledge.lock"):
        (home / name).touch()
    return home


def test_a_named_configuration_wins_over_everything(tmp_path: Path) -> None:
    (tmp_path / "knowledge.yaml").write_text(BLOCK, "utf-8")
    store(tmp_path)
    environ = {"KNOWLEDGE_CONFIG": "b.yaml"}
    named = locate(tmp_path, config=Path("a.yaml"), environ=environ)
    assert named == Located("named", tmp_path / "a.yaml", tmp_path / "knowledge" / "a")
    assert locate(tmp_path, config=None, environ=environ).config_path == tmp_path / "b.yaml"


def test_a_named_configuration_below_home_and_above(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "me")}
    assert locate(tmp_path, config=Path("~/k.yaml"), environ=environ).config_path == tmp_path / "me" / "k.yaml"
    assert locate(tmp_path / "a", config=Path("../k.yaml"), environ={}).config_path == tmp_path / "k.yaml"


def test_the_nearest_configuration_here_or_above(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a"):
        (folder / "knowledge.yaml").write_text(BLOCK, "utf-8")
    found = locate(deep, config=None, environ={})
    assert (found.how, found.config_path) == ("found", tmp_path / "a" / "knowledge.yaml")
    assert found.home == tmp_path / "a" / "knowledge" / "knowledge"
    assert found.places == (deep, tmp_path / "a" / "b", tmp_path / "a")


def test_a_configuration_above_wins_over_a_store_here(tmp_path: Path) -> None:
    here = tmp_path / "a"
    store(here)
    (tmp_path / "knowledge.yaml").write_text(BLOCK, "utf-8")
    assert locate(here, config=None, environ={}).how == "found"


def test_an_agent_file_counts_only_with_a_block(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("harness:\n  model: x\n", "utf-8")
    assert locate(tmp_path, config=None, environ={}).config_path is None
    path.write_text("tools: [knowledge]\n# knowledge: none\nprompt: |\n  knowledge: is power\n", "utf-8")
    assert locate(tmp_path, config=None, environ={}).config_path is None
    path.write_text("harness:\n  knowledge:\n    enabled: true\n", "utf-8")
    assert locate(tmp_path, config=None, environ={}).config_path == path
    path.write_text('{"harness": {"knowledge": {}}}', "utf-8")
    assert locate(tmp_path, config=None, environ={}).config_path == path
    (tmp_path / "knowledge.yaml").write_text(BLOCK, "utf-8")
    assert locate(tmp_path, config=None, environ={}).config_path == tmp_path / "knowledge.yaml"


@pytest.mark.timeout(10)
def test_a_large_agent_file_is_looked_at_quickly(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    for content in ("\n" * 1_000_000, " " * 1_000_000, "{" * 1_000_000, "\t\n" * 500_000):
        path.write_text(content, "utf-8")
        assert locate(tmp_path, config=None, environ={}).how == "nothing"


def test_a_broken_agent_file_of_another_program_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("a: [\n\tb: the knowledge: of\n", "utf-8")
    assert locate(tmp_path, config=None, environ={}).how == "nothing"


def test_a_broken_agent_file_with_a_block_is_told(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("knowledge:\n\tenabled: true\n", "utf-8")
    with pytest.raises(ConfigurationError, match=r"agent\.yaml:2"):
        locate(tmp_path, config=None, environ={})


def test_a_link_that_leads_nowhere_is_found_rather_than_passed_over(tmp_path: Path) -> None:
    (tmp_path / "knowledge.yaml").symlink_to(tmp_path / "gone")
    assert locate(tmp_path, config=None, environ={}).how == "found"


def test_a_folder_of_the_file_s_name_is_none(tmp_path: Path) -> None:
    (tmp_path / "knowledge.yaml").mkdir()
    (tmp_path / "agent.yaml").mkdir()
    assert locate(tmp_path, config=None, environ={}).how == "nothing"


def test_the_nearest_store_here_or_above(tmp_path: Path) -> None:
    home = store(tmp_path)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    found = locate(deep, config=None, environ={})
    assert (found.how, found.home) == ("store", home)
    assert found.places[:3] == (deep, tmp_path / "a", tmp_path)
    nearer = store(deep)
    assert locate(deep, config=None, environ={}).home == nearer
    assert locate(nearer, config=None, environ={}).home == nearer


def test_a_state_database_alone_makes_a_store_a_lock_alone_does_not(tmp_path: Path) -> None:
    home = tmp_path / "knowledge" / "default"
    home.mkdir(parents=True)
    (home / "knowledge.lock").touch()
    assert locate(tmp_path, config=None, environ={}).how == "nothing"
    (home / "state.db").touch()
    assert locate(tmp_path, config=None, environ={}).how == "store"


def test_the_default_store_is_preferred_and_a_single_one_taken(tmp_path: Path) -> None:
    wiki = store(tmp_path, "wiki")
    (tmp_path / "knowledge" / "no-store").mkdir()
    (tmp_path / "knowledge" / "file").touch()
    assert locate(tmp_path, config=None, environ={}).home == wiki
    default = store(tmp_path)
    assert locate(tmp_path, config=None, environ={}).home == default
    assert locate(tmp_path, config=None, environ={"KNOWLEDGE_IDENTITY": "wiki"}).home == wiki
    assert locate(wiki, config=None, environ={}).home == wiki


def test_several_stores_without_a_default_are_listed(tmp_path: Path) -> None:
    store(tmp_path, "wiki")
    store(tmp_path, "blog")
    with pytest.raises(UsageError, match="blog, wiki") as caught:
        locate(tmp_path, config=None, environ={})
    assert caught.value.exit_status == 2
    assert "KNOWLEDGE_IDENTITY" in caught.value.hint


def test_nothing_found_is_the_default_place_and_names_where_it_looked(tmp_path: Path) -> None:
    found = locate(tmp_path, config=None, environ={})
    assert (found.how, found.home) == ("nothing", tmp_path / "knowledge" / "default")
    assert found.places == (tmp_path, *tmp_path.parents)
    named = locate(tmp_path, config=None, environ={"KNOWLEDGE_IDENTITY": "wiki"})
    assert named.home == tmp_path / "knowledge" / "wiki"


def test_a_directory_variable_is_the_home_without_a_configuration(tmp_path: Path) -> None:
    store(tmp_path)
    found = locate(tmp_path, config=None, environ={"KNOWLEDGE_DIRECTORY": "elsewhere"})
    assert (found.how, found.home) == ("directory", tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("located", "words"),
    [
        (Located("named", Path("/k.yaml"), Path("/h")), "configuration /k.yaml"),
        (Located("found", Path("/k.yaml"), Path("/h")), "configuration /k.yaml, found here or above"),
        (Located("store", None, Path("/h")), "index /h, found here or above"),
        (Located("directory", None, Path("/h")), "index /h, named by KNOWLEDGE_DIRECTORY"),
        (Located("nothing", None, Path("/h")), "default place /h"),
    ],
)
def test_the_command_can_say_which(located: Located, words: str) -> None:
    assert located.words() == words


def test_without_a_file_and_variables_no_parser_is_loaded(tmp_path: Path) -> None:
    """A search in a fresh process must be quick. (msgspec is loaded: our values are made of its structs.)"""
    program = (
        "import sys; before = set(sys.modules)  # what measures coverage loads its own\n"
        "from pathlib import Path; from app.config import load, locate\n"
        "cwd = Path(sys.argv[1]); environ = {'HOME': '/', 'PATH': ''}\n"
        "load(locate(cwd, config=None, environ=environ), environ, cwd=cwd)\n"
        "heavy = {'yaml', 'app.config_schema', 'dataclasses', 'typer', 'rich', 'pathspec'}\n"
        "sys.exit(', '.join(heavy & (set(sys.modules) - before)) or 0)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")

"""The documents against the program: verbs, options, codes and keys are named, links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from app.config_environment import known_variables
from app.config_schema import LATER_FEATURES, PathBlock
from cli.verbs import app
from domain.errors import KnowledgeError
from domain.files import Outcome, Reason
from domain.status import DropReason, SearchStatus

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*sorted(DOCS.glob("*.md")), *(ROOT / name for name in BESIDE)]
REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")
CONFIGURATION = (DOCS / "reference-configuration.md").read_text(encoding="utf-8")
JSON = (DOCS / "reference-json.md").read_text(encoding="utf-8")
EVERYWHERE = {"--help", "--json", "--config"}  # said once for all verbs


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    context = command.make_context(name, [], resilient_parsing=True)
    for verb in command.list_commands(context):
        yield from commands(command.get_command(context, verb), f"{name} {verb}")


def section(heading: str) -> str:
    """The text below the heading that begins so, up to the next heading."""
    found = re.search(rf"^### `{re.escape(heading)}(?=[ `])[^\n]*\n(.*?)(?=^#|\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


VERBS = dict(commands(get_command(app), "knowledge"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_documented(verb: str) -> None:
    text = section(verb)
    assert text, f"docs/reference.md has no section for {verb}"
    options = {option for parameter in VERBS[verb].params for option in parameter.opts if option.startswith("--")}
    assert not {option for option in options - EVERYWHERE if f"`{option}" not in text}


@pytest.mark.parametrize("verb", VERBS)
def test_no_option_is_documented_that_is_not_there(verb: str) -> None:
    options = {option for parameter in VERBS[verb].params for option in parameter.opts}
    documented = {
        name
        for line in section(verb).splitlines()
        if line.startswith("- `--")
        for name in re.findall(r"`(--[a-z-]+)", line)
    }
    assert documented <= options | EVERYWHERE


def error_classes(of: type[KnowledgeError] = KnowledgeError) -> Iterator[type[KnowledgeError]]:
    yield of
    for below in of.__subclasses__():
        yield from error_classes(below)


def test_every_error_stands_beside_its_exit_status() -> None:
    rows = {
        int(cells[1]): cells[2]
        for line in REFERENCE.splitlines()
        if (cells := line.split("|"))[1:] and cells[1].strip().isdigit()
    }
    assert not [
        error.__name__
        for error in error_classes()
        if error.__module__ == KnowledgeError.__module__ and f"`{error.code}`" not in rows.get(error.exit_status, "")
    ]


@pytest.mark.parametrize("names", [Outcome, Reason, DropReason])
def test_every_outcome_and_reason_has_its_row(names: Any) -> None:
    assert not [name.value for name in names if f"\n| `{name.value}` |" not in REFERENCE]


def test_every_search_status_is_documented() -> None:
    assert not [status.value for status in SearchStatus if f"`{status.value}`" not in JSON]


def test_every_key_of_the_configuration_is_documented() -> None:
    keys = {key for key, _ in known_variables().values() if key.split(".")[0] not in LATER_FEATURES}
    assert not [key for key in keys if f"| `{key}` |" not in CONFIGURATION]
    assert not [key for key in PathBlock.__struct_fields__ if f"| `{key}` |" not in CONFIGURATION]
    assert not [feature for feature in LATER_FEATURES if f"`{feature}`" not in CONFIGURATION]


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as web hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = (page.parent / path).resolve() if path else page
        if not linked.is_file() or (anchor and anchor not in anchors(linked)):
            dead.append(target)
    assert not dead


def test_the_readme_opens_with_the_two_commands_and_the_first_index() -> None:
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    places = [opening.find(text) for text in ("make demo", "make test", ".venv/bin/knowledge index ~/notes")]
    assert -1 not in places
    assert places == sorted(places)
    assert "knowledge/default" in opening


def test_the_docs_say_what_private_modes_do_not_protect() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for said in ("verbatim and unencrypted", "0600", "0700", "does not protect"):
        assert said in readme

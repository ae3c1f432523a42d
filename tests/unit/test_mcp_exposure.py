"""Which tools an operator's list exposes."""

from pathlib import Path

import pytest

from app.mcp_exposure import DECLARED, ENUMERATE, READ, SEARCH, ToolDeclaration, exposed_tools, exposure_warnings
from domain.errors import ConfigurationError, UsageError
from domain.settings import McpSettings, Settings

BASE = Settings("b", Path("/b"), config_path=None, configured=False)
WRITING = ToolDeclaration("knowledge_write", "write")


def test_names_are_trimmed_and_repeats_dropped() -> None:
    """S1-52; the order is that of the declaration, whatever was written."""
    assert exposed_tools([f" {READ} ", SEARCH, READ, ""], BASE) == (SEARCH, READ)


@pytest.mark.parametrize("names", [[], [""], [" ", "  "]])
def test_an_empty_list_says_what_to_add(names: list[str]) -> None:
    """R9: nothing by default."""
    with pytest.raises(UsageError) as caught:
        exposed_tools(names, BASE)
    assert caught.value.exit_status == 2
    assert f"--tools {SEARCH}" in caught.value.hint


def test_an_unknown_name_is_refused_with_the_set() -> None:
    """S1-52."""
    with pytest.raises(ConfigurationError) as caught:
        exposed_tools([SEARCH, "knowledge_serch\x1b"], BASE)
    assert "'knowledge_serch<U+001B>'" in caught.value.message
    assert f"Did you mean {SEARCH}?" in caught.value.hint
    assert all(tool.name in caught.value.hint for tool in DECLARED)


def test_a_new_tool_exposes_nothing_by_itself() -> None:
    """S0-80: a dummy tool beside the others is served when it is named, and not before."""
    declared = (*DECLARED, ToolDeclaration("knowledge_dummy"))
    names = [tool.name for tool in DECLARED]
    assert "knowledge_dummy" not in exposed_tools(names, BASE, declared=declared)
    assert exposed_tools(["knowledge_dummy"], BASE, declared=declared) == ("knowledge_dummy",)


def test_a_tool_that_writes_needs_one_word_more() -> None:
    """R9."""
    with pytest.raises(ConfigurationError, match="allow_write"):
        exposed_tools([WRITING.name], BASE, declared=(WRITING,))
    allowed = Settings("b", Path("/b"), config_path=None, configured=False, mcp=McpSettings((), allow_write=True))
    assert exposed_tools([WRITING.name], allowed, declared=(WRITING,)) == (WRITING.name,)


def test_no_tool_writes() -> None:
    """S1-58."""
    assert {tool.tool_class for tool in DECLARED} == {"read"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((SEARCH, ENUMERATE), []),
        ((SEARCH, ENUMERATE, READ), []),
        ((SEARCH, READ), ["which documents hold a word"]),
        ((ENUMERATE,), ["ranked"]),
        ((READ,), []),
    ],
)
def test_what_is_lost_is_said(names: tuple[str, ...], said: list[str]) -> None:
    """S0-81."""
    warnings = list(exposure_warnings(names))
    assert len(warnings) == len(said)
    assert all(words in warning for words, warning in zip(said, warnings, strict=True))

"""Which tools an operator's list exposes."""

from pathlib import Path

import pytest

from app.mcp_exposure import (
    DECLARED,
    ENUMERATE,
    READ,
    SEARCH,
    ToolDeclaration,
    declaration_of,
    exposed_tools,
    exposure_warnings,
    is_listed,
)
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
    declared = (*DECLARED, ToolDeclaration("knowledge_dummy", "read"))
    names = [tool.name for tool in DECLARED]
    assert "knowledge_dummy" not in exposed_tools(names, BASE, declared=declared)
    assert exposed_tools(["knowledge_dummy"], BASE, declared=declared) == ("knowledge_dummy",)


def test_a_tool_that_writes_needs_one_word_more() -> None:
    """R9."""
    with pytest.raises(ConfigurationError, match="allow_write"):
        exposed_tools([WRITING.name], BASE, declared=(WRITING,))
    allowed = Settings("b", Path("/b"), config_path=None, configured=False, mcp=McpSettings((), allow_write=True))
    assert exposed_tools([WRITING.name], allowed, declared=(WRITING,)) == (WRITING.name,)


def test_a_tool_that_nobody_has_classified_writes() -> None:
    """S4-28: what is not said of a tool is the narrower, so that forgetting it opens nothing."""
    declared = (*DECLARED, ToolDeclaration("knowledge_new"))
    with pytest.raises(ConfigurationError, match="allow_write"):
        exposed_tools(["knowledge_new"], BASE, declared=declared)
    assert declaration_of("knowledge_new") == ToolDeclaration("knowledge_new", "write", "full")
    assert not is_listed(declaration_of("knowledge_new"), "agent")


def test_every_tool_and_what_it_is() -> None:
    """S1-58, S4-17, S4-20: whoever adds a tool says here what it is; none writes."""
    assert [(tool.name, tool.tool_class, tool.profile) for tool in DECLARED] == [
        ("knowledge_search", "read", "agent"),
        ("knowledge_enumerate", "read", "agent"),
        ("knowledge_read", "read", "agent"),
    ]


def test_the_full_list_shows_what_the_short_one_leaves_out() -> None:
    """S4-17."""
    advanced = ToolDeclaration("knowledge_advanced", "read", "full")
    assert [is_listed(advanced, profile) for profile in ("agent", "full")] == [False, True]
    assert all(is_listed(tool, profile) for tool in DECLARED for profile in ("agent", "full"))


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

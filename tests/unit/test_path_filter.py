import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UsageError
from retrieval.path_filter import MAX_GLOB_CHARS, compile_glob


@pytest.mark.parametrize(
    ("glob", "key", "matches"),
    [
        ("*.md", "docs/a/b.md", True),
        ("*.md", "docs/a/b.txt", False),
        ("guide", "docs/guide/deep/a.md", True),
        ("guide", "docs/guided/a.md", False),
        ("docs/api/*.md", "docs/api/a.md", True),
        ("api/*.md", "docs/api/a.md", True),
        ("api/*.md", "docs/x/api/a.md", False),
        ("**/api/*.md", "docs/x/api/a.md", True),
        ("docs/**/a.md", "docs/a.md", True),
        ("docs/**/a.md", "docs/x/y/a.md", True),
        ("docs/**", "docs/x/y/a.md", True),
        ("**", "docs/a.md", True),
        ("docs/*", "docs/x/y/a.md", True),
        ("docs/*/a.md", "docs/x/y/a.md", False),
        ("a?.md", "docs/ab.md", True),
        ("a?.md", "docs/a/.md", False),
        ("[ab]*.md", "docs/bx.md", True),
        ("[!ab]*.md", "docs/bx.md", False),
        ("[z-a].md", "docs/-.md", False),
        ("[.md", "docs/[.md", True),
        ("a*b*c.md", "docs/aXbbXc.md", True),
        ("a*b*c.md", "docs/acb.md", False),
        ("*b", "docs/ab", True),
        ("./docs/a.md", "docs/a.md", True),
        ("/docs/", "docs/a.md", True),
    ],
)
def test_globs(glob: str, key: str, matches: bool) -> None:
    assert (compile_glob(glob).fullmatch(key) is not None) is matches


@pytest.mark.parametrize("glob", ["*a" * 400 + "b", "[" * 500, "**/a/**/b/**/c", "?*" * 300])
def test_no_glob_takes_long(glob: str) -> None:
    pattern = compile_glob(glob)
    begin = time.process_time()
    pattern.fullmatch("docs/" + "a" * 3_000)
    pattern.fullmatch("a/" * 500 + "x.md")
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("glob", ["a" * (MAX_GLOB_CHARS + 1), "**/a/**/b/**/c/**/d"])
def test_too_much_of_a_glob_is_a_usage_error(glob: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_glob(glob)
    assert caught.value.hint


@given(st.text(alphabet="ab*?[]!^-/.\\&~|#x", max_size=25), st.text(alphabet="ab/.x-", max_size=25))
def test_every_text_is_a_glob(glob: str, key: str) -> None:
    try:
        compile_glob(glob).fullmatch(key)
    except UsageError:
        assert glob.count("**") > 3

"""The scripts by which bash, zsh and fish complete `knowledge`.

Verbs and options stand in the script itself, so that completing one starts no process. Names of roots and ids of runs
are asked of `knowledge completion roots|runs`, and never pass through an expansion of the shell: a folder may be called
`$(rm -r x)`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cli.completion_shells import BASH_BODY, BASH_HEAD, FISH_HEAD, ZSH_BODY, ZSH_HEAD
from cli.completion_table import ROOT_OPTIONS, CompletedOption, CompletedVerb, Taken

PROGRAMS = ("knowledge", "rag")


def bash_script(verbs: Sequence[CompletedVerb], groups: dict[str, str]) -> str:
    tables = [
        _cases("__knowledge_takes", _taken_by_options(verbs, _spaced)),
        _cases("__knowledge_arguments", ((verb.names, _spaced(verb.arguments)) for verb in verbs)),
        _cases("__knowledge_options", _options(verbs, lambda options: " ".join(option.name for option in options))),
        _cases("__knowledge_below", ((("",), " ".join(_first_words(verbs))), *_below(verbs, groups, " ".join))),
    ]
    return "\n".join([BASH_HEAD, *tables, BASH_BODY])


def zsh_script(verbs: Sequence[CompletedVerb], groups: dict[str, str]) -> str:
    def described(entries: Iterable[tuple[str, str]]) -> str:
        return "\n".join(f"{name}:{summary}" for name, summary in entries)

    def options(of: Sequence[CompletedOption]) -> str:
        return described((option.name, option.help) for option in of)

    summaries = {verb.names[0]: verb.summary for verb in verbs} | groups
    first = described((name, summaries[name]) for name in _first_words(verbs))
    below = [
        ((group,), described((name.split()[1], summaries[name]) for name in summaries if name.startswith(f"{group} ")))
        for group in groups
    ]
    tables = [
        _cases("__knowledge_takes", _taken_by_options(verbs, _spaced)),
        _cases("__knowledge_arguments", ((verb.names, _spaced(verb.arguments)) for verb in verbs)),
        _cases("__knowledge_options", _options(verbs, options)),
        _cases("__knowledge_below", ((("",), first), *below)),
    ]
    return "\n".join([ZSH_HEAD, *tables, ZSH_BODY])


def fish_script(verbs: Sequence[CompletedVerb], groups: dict[str, str]) -> str:
    lines = [_fish_head(groups)]
    summaries = {verb.names[0]: verb.summary for verb in verbs} | groups
    lines += [
        _fish("", f"-f -a {_fish_quoted(name)} -d {_fish_quoted(summaries[name])}") for name in _first_words(verbs)
    ]
    for verb in verbs:
        group, _, below = verb.names[0].partition(" ")
        if below:
            lines.append(_fish(group, f"-f -a {_fish_quoted(below)} -d {_fish_quoted(verb.summary)}"))
    lines += [_fish("", _fish_option(option)) for option in ROOT_OPTIONS]
    for verb in verbs:
        for name in verb.names:
            lines += [_fish(name, _fish_option(option)) for option in verb.options]
            lines.append(_fish(name, _fish_taken(verb.arguments)))
    return "\n".join([*lines, *(f"complete -c {other} -w {PROGRAMS[0]}" for other in PROGRAMS[1:])]) + "\n"


SCRIPTS: dict[str, Callable[[Sequence[CompletedVerb], dict[str, str]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}


def _first_words(verbs: Sequence[CompletedVerb]) -> list[str]:
    return list(dict.fromkeys(verb.names[0].split()[0] for verb in verbs))


def _below(
    verbs: Sequence[CompletedVerb], groups: Iterable[str], joined: Callable[[list[str]], str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for group in groups:
        names = [verb.names[0].split() for verb in verbs]
        yield (group,), joined([words[1] for words in names if words[0] == group])


def _options(
    verbs: Sequence[CompletedVerb], told: Callable[[Sequence[CompletedOption]], str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    yield ("",), told(ROOT_OPTIONS)
    yield from ((verb.names, told(verb.options)) for verb in verbs)


def _taken_by_options(
    verbs: Sequence[CompletedVerb], told: Callable[[Taken], str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """By verb and option, with a blank between them; only of options that take a value."""
    for names, options in ((("",), ROOT_OPTIONS), *((verb.names, verb.options) for verb in verbs)):
        for option in options:
            if option.value.kind != "nothing":
                yield tuple(f"{name} {option.name}" for name in names), told(option.value)


def _spaced(taken: Taken) -> str:
    return " ".join((taken.kind, *taken.choices))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _cases(function: str, rows: Iterable[tuple[tuple[str, ...], str]]) -> str:
    """A function that sets REPLY by its first argument; to nothing for what is not in the table."""
    lines = [f"    {'|'.join(map(_quoted, patterns))}) REPLY={_quoted(value)} ;;" for patterns, value in rows]
    return "\n".join([f"{function}() {{", '  case "$1" in', *lines, "    *) REPLY='' ;;", "  esac", "}"])


def _fish(verb: str, rest: str) -> str:
    return f"complete -c {PROGRAMS[0]} -n {_fish_quoted(f'__knowledge_at {_fish_quoted(verb)}')} {rest}"


def _fish_option(option: CompletedOption) -> str:
    taken = "" if option.value.kind == "nothing" else f" -r {_fish_taken(option.value)}"
    return f"-l {option.name.removeprefix('--')} -d {_fish_quoted(option.help)}{taken}"


def _fish_taken(taken: Taken) -> str:
    match taken.kind:
        case "files":
            return "-F"
        case "choices":
            return f"-f -a {_fish_quoted(' '.join(taken.choices))}"
        case "roots" | "runs":
            return f"-f -a {_fish_quoted(f'(__knowledge_ask {taken.kind})')}"
        case _:
            return "-f"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_head(groups: Iterable[str]) -> str:
    return FISH_HEAD.replace("GROUPS", " ".join(groups))

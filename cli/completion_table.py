"""What the shells can complete: every verb with its options and what they take, from the tables of the parsers."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from typer.main import get_group

from cli.arguments import CONFIG_FLAG, Flag
from cli.quick_verbs import ALIASES, QUICK_VERBS, quick_verb
from cli.verbs import ALL_VERBS, GROUPS, app

Kind = Literal["nothing", "anything", "choices", "files", "roots", "runs"]
_FILE_METAVARS = frozenset({"PATH", "[PATH]", "PATHS", "FILE", "DIR", "CITATION|PATH"})


class Taken(NamedTuple):
    """What stands behind an option or a verb."""

    kind: Kind
    choices: tuple[str, ...] = ()


class CompletedOption(NamedTuple):
    name: str
    help: str
    value: Taken  # "nothing": the option is a switch


class CompletedVerb(NamedTuple):
    """`names` is the verb's own name and then its other ones; a verb below a group has two words: `runs show`."""

    names: tuple[str, ...]
    summary: str
    options: tuple[CompletedOption, ...]
    arguments: Taken


HELP_OPTION = CompletedOption("--help", "Show the page of the verb.", Taken("nothing"))
ROOT_OPTIONS = (
    CompletedOption("--config", CONFIG_FLAG.help, Taken("files")),
    CompletedOption("--debug", "Show where an error comes from.", Taken("nothing")),
    HELP_OPTION,
    CompletedOption("--version", "Print the version.", Taken("nothing")),
)


def completed_verbs() -> tuple[CompletedVerb, ...]:
    """In the order of the help page. Every module of a verb is imported: this makes scripts, it completes nothing."""
    return tuple(verb for name in ALL_VERBS for verb in _verbs_of(name))


def group_summaries() -> dict[str, str]:
    """Of the verbs that have verbs below them."""
    return {name: ALL_VERBS[name][1] for name in GROUPS}


def _verbs_of(name: str) -> Iterator[CompletedVerb]:
    if name in QUICK_VERBS:
        yield _quick(name)
        return
    command: Any = get_group(app).get_command(None, name)  # type: ignore[arg-type]
    if name not in GROUPS:
        yield _parsed((name,), ALL_VERBS[name][1], command.params)
        return
    for below, inner in command.commands.items():
        yield _parsed((f"{name} {below}",), inner.help.partition("\n")[0], inner.params)


def _quick(name: str) -> CompletedVerb:
    verb = quick_verb(name)
    names = (name, *(alias for alias, meant in ALIASES.items() if meant == name))
    options = (CompletedOption(flag.name, flag.help, _of_flag(flag)) for flag in verb.flags)
    arguments = Taken("choices", verb.words_choices) if verb.words_choices else _of_metavar(verb.words_metavar)
    return CompletedVerb(names, ALL_VERBS[name][1], (*options, HELP_OPTION), arguments)


def _of_flag(flag: Flag) -> Taken:
    if flag.kind is bool:
        return Taken("nothing")
    return _of_option(flag.name, flag.metavar, flag.choices)


def _parsed(names: tuple[str, ...], summary: str, parameters: Iterable[Any]) -> CompletedVerb:
    """Of typer's own description of a command."""
    options, arguments = [], Taken("nothing")
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            arguments = _of_metavar(parameter.metavar or "")
            continue
        choices = tuple(str(choice) for choice in parameter.type_descriptor.choices or ())
        is_switch = parameter.is_flag
        value = Taken("nothing") if is_switch else _of_option(parameter.opts[0], parameter.metavar or "", choices)
        options += [CompletedOption(name, parameter.help or "", value) for name in parameter.opts]
    return CompletedVerb(names, summary, (*options, HELP_OPTION), arguments)


def _of_option(name: str, metavar: str, choices: tuple[str, ...]) -> Taken:
    if choices:
        return Taken("choices", choices)
    return Taken("roots") if name == "--root" else _of_metavar(metavar, besides="anything")


def _of_metavar(metavar: str, besides: Kind = "nothing") -> Taken:
    if metavar == "ID":
        return Taken("runs")
    return Taken("files") if metavar in _FILE_METAVARS else Taken(besides)

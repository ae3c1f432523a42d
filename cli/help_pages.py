"""What `--help` shows of a verb: usage, what it does, its arguments and options, and examples."""

from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from cli.examples import EXAMPLES, Example
from cli.quick_verbs import QUICK_VERBS, quick_verb

_LAST = ("--json", "--config", "--help")  # said of every verb: below its own options
HELP_OF_HELP = "Show this page."


def with_page(command: Any, words: str) -> Any:
    """The same command, with our page; `words` are the verb's: `search`, `runs show`."""
    below = getattr(command, "commands", None)
    if below is None:
        command.format_help = lambda ctx, formatter: _write_page(command, words, ctx, formatter)
        return command
    for name, one in below.items():
        with_page(one, f"{words} {name}")
    command.format_help = lambda ctx, formatter: _write_page_of_group(command, words, ctx, formatter)
    return command


def _write_page_of_group(group: Any, words: str, ctx: Any, formatter: Any) -> None:
    formatter.write_usage(f"knowledge {words}", "COMMAND ...")
    group.format_help_text(ctx, formatter)
    with formatter.section("Commands"):
        formatter.write_dl([(name, command.help or "") for name, command in group.commands.items()])
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(f"knowledge {words} COMMAND --help says more.")


def _write_page(command: TyperCommand, words: str, ctx: Any, formatter: Any) -> None:
    formatter.write_usage(f"knowledge {words}", " ".join(_usage(command, words)))
    command.format_help_text(ctx, formatter)
    for heading, rows in (("Arguments", _arguments(command)), ("Options", _options(command, ctx))):
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    write_examples(formatter, EXAMPLES.get(words, ()))


def write_examples(formatter: Any, examples: Sequence[Example]) -> None:
    """Each line as it is typed, never broken."""
    if not examples:
        return
    with formatter.section("Examples"):
        for line, does in examples:
            formatter.write(f"  {line}\n      {does}\n")


def _usage(command: TyperCommand, words: str) -> Iterator[str]:
    yield "[OPTIONS]"
    if words in QUICK_VERBS:  # typer takes their words as a list of any length
        verb = quick_verb(words)
        if verb.words_metavar:
            shown = verb.words_metavar if verb.least_words else f"[{verb.words_metavar}]"
            yield f"{shown}..." if verb.most_words is None else shown
        return
    for argument in _of_kind(command, "argument"):
        shown = argument.metavar or argument.name.upper()
        many = "..." if argument.nargs == -1 else ""
        yield f"{shown}{many}" if argument.required or shown.startswith("[") else f"[{shown}]{many}"


def _arguments(command: TyperCommand) -> list[tuple[str, str]]:
    return [
        ((argument.metavar or argument.name.upper()).strip("[]"), argument.help or "")
        for argument in _of_kind(command, "argument")
    ]


def _options(command: TyperCommand, ctx: Any) -> list[tuple[str, str]]:
    options = sorted(_of_kind(command, "option"), key=lambda option: _place(option.opts[0]))
    rows = [(_written(option), _help_of(option)) for option in options]
    has_help = command.get_help_option(ctx) is not None
    return [*rows, ("--help", HELP_OF_HELP)] if has_help else rows


def _place(name: str) -> int:
    return _LAST.index(name) + 1 if name in _LAST else 0


def _of_kind(command: TyperCommand, kind: str) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == kind]


def _written(option: Any) -> str:
    """`--top-k N`, `--log-format console|json`."""
    names = ", ".join(option.opts)
    if option.is_flag:
        return names
    choices = "|".join(str(choice) for choice in option.type_descriptor.choices or ())
    return f"{names} {option.metavar or choices or 'VALUE'}"


def _help_of(option: Any) -> str:
    """With its default, where that is a value that one would write, and is not said already."""
    said, default = option.help or "", option.default
    is_value = isinstance(default, str | int) and not isinstance(default, bool) and default != ""
    if option.is_flag or not is_value or "default" in said:
        return said
    return f"{said.rstrip('.')}; default: {default}."

"""Arguments of the verbs that must start at once, read without a parser library (typer costs 0.1 s and more).

One table of flags a verb, two readers of it: `read`, and `signature`, from which typer makes the help page and
the same command.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from domain.errors import UsageError

if TYPE_CHECKING:
    import inspect

Value = bool | int | str | None


class Flag(NamedTuple):
    """An option: `bool` kinds take no value, the others one, as `--name VALUE` or `--name=VALUE`."""

    name: str
    kind: type
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()  # what it takes, where that is few; for the shells to offer: the verb itself refuses

    @property
    def key(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


JSON_FLAG = Flag("--json", bool, "Print JSON.")
CONFIG_FLAG = Flag("--config", str, "The configuration; default: the nearest one.", "PATH")


class Arguments(NamedTuple):
    """What was written: `words` is all that is no option."""

    words: list[str]
    values: dict[str, Value]

    def flag(self, key: str) -> bool:
        return self.values[key] is True

    def number(self, key: str) -> int | None:
        value = self.values[key]
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def amount(self, key: str) -> int:
        """A number from 0 up; 0 where none is given."""
        value = self.number(key) or 0
        if value < 0:
            raise UsageError(f"--{key} takes a number from 0 up, not {value}")
        return value

    def text(self, key: str) -> str | None:
        value = self.values[key]
        return value if isinstance(value, str) else None


class TableVerb(NamedTuple):
    """A verb whose arguments stand in a table."""

    name: str
    help: str
    flags: tuple[Flag, ...]
    call: Callable[[Arguments], int]  # returns the exit status
    words_metavar: str = ""  # "": the verb takes none
    words_help: str = ""
    words_choices: tuple[str, ...] = ()  # as those of a flag
    least_words: int = 0
    most_words: int | None = 0  # None: any number
    unknown_are_words: bool = False  # an unknown option is a part of the query, not a mistake

    def run(self, arguments: Sequence[str]) -> int:
        """Read the arguments and do it. Raises UsageError, and what the verb raises."""
        return self.take(read(self.flags, arguments, unknown_are_words=self.unknown_are_words))

    def take(self, arguments: Arguments) -> int:
        words = arguments.words
        if len(words) < self.least_words:
            raise UsageError(f"{self.words_metavar} is missing", hint=f"`knowledge {self.name} --help` says more")
        if self.most_words is not None and len(words) > self.most_words:
            raise UsageError(
                f"{words[self.most_words]!r} is one word too many", hint=f"`knowledge {self.name} --help` says more"
            )
        return self.call(arguments)


def before_words(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments in front of a `--`, where options may stand."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def wants_help(arguments: Sequence[str]) -> bool:
    return "--help" in before_words(arguments)


def read(flags: Sequence[Flag], arguments: Sequence[str], *, unknown_are_words: bool) -> Arguments:
    """Split arguments into words and values; behind `--` everything is a word.

    Raises UsageError for an option without its value, and for an unknown one unless it belongs to the words.
    """
    known = {flag.name: flag for flag in flags}
    values: dict[str, Value] = {flag.key: False if flag.kind is bool else None for flag in flags}
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            words.extend(rest)
            break
        option, has_value, value = argument.partition("=")
        flag = known.get(option)
        if flag is None or (has_value and flag.kind is bool):
            if argument.startswith("-") and argument != "-" and not unknown_are_words:
                raise _unknown(argument, known)
            words.append(argument)
        elif flag.kind is bool:
            values[flag.key] = True
        else:
            written = value if has_value else next(rest, None)
            values[flag.key] = _value(flag, written)
    return Arguments(words, values)


def signature(verb: TableVerb) -> "inspect.Signature":
    """The same table for typer: `words` and one parameter a flag."""
    import inspect
    from typing import Annotated

    import typer

    words = inspect.Parameter(
        "words",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[
            list[str] | None, typer.Argument(metavar=verb.words_metavar, help=verb.words_help, show_default=False)
        ],
        default=None,
    )
    options = [
        inspect.Parameter(
            flag.key,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[
                bool if flag.kind is bool else flag.kind | None,
                typer.Option(flag.name, help=flag.help, metavar=flag.metavar or None, show_default=False),
            ],
            default=False if flag.kind is bool else None,
        )
        for flag in verb.flags
    ]
    return inspect.Signature([words, *options] if verb.words_metavar else options)


def _unknown(argument: str, known: dict[str, Flag]) -> UsageError:
    import difflib

    written = argument.partition("=")[0]
    near = [name for name in known if name.startswith(written)] or difflib.get_close_matches(written, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return UsageError(f"there is no option {argument!r}", hint=f"{meant}--help lists the options")


def _value(flag: Flag, written: str | None) -> Value:
    if written is None:
        raise UsageError(f"{flag.name} needs a value", hint=f"write {flag.name} {flag.metavar or 'VALUE'}")
    if flag.kind is not int:
        return written
    try:
        return int(written)
    except ValueError:
        raise UsageError(
            f"{flag.name} takes a whole number, not {written[:80]!r}",
            hint="to use it as a word, write it behind --",
        ) from None

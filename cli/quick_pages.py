"""The quick verbs as typer knows them: for their help pages."""

from collections.abc import Callable
from typing import Any

from typer.main import get_group

from cli.arguments import Arguments, TableVerb, Value, signature
from cli.quick_verbs import quick_verb
from cli.verbs import verb_app


def typer_command(name: str) -> Any:
    verb = quick_verb(name)
    app = verb_app()
    settings = {"ignore_unknown_options": verb.unknown_are_words}
    app.command(name, help=verb.help, context_settings=settings)(typer_callback(verb))
    return get_group(app).commands[name]


def typer_callback(verb: TableVerb) -> Callable[..., int]:
    """A function with one parameter a flag, as typer wants to see it."""

    def callback(words: list[str] | None = None, **values: Value) -> int:
        return verb.take(Arguments(words or [], values))

    made = signature(verb)
    callback.__signature__ = made  # type: ignore[attr-defined]
    callback.__annotations__ = {name: parameter.annotation for name, parameter in made.parameters.items()}
    return callback

"""The verbs whose arguments stand in a table (cli.arguments), as typer knows them: their help pages."""

from collections.abc import Callable

from cli import index_verb, search_verb
from cli.arguments import Arguments, TableVerb, Value, signature
from cli.verbs import verb_app

app = verb_app()


def typer_callback(verb: TableVerb) -> Callable[..., int]:
    """A function with one parameter a flag, as typer wants to see it."""

    def callback(words: list[str] | None = None, **values: Value) -> int:
        return verb.call(Arguments(words or [], values))

    made = signature(verb)
    callback.__signature__ = made  # type: ignore[attr-defined]
    callback.__annotations__ = {name: parameter.annotation for name, parameter in made.parameters.items()}
    return callback


for _verb in (index_verb.VERB, search_verb.VERB):
    app.command(_verb.name, help=_verb.help, context_settings={"ignore_unknown_options": _verb.unknown_are_words})(
        typer_callback(_verb)
    )

"""`knowledge eval`: run and recall. Parses and prints; app.evaluation and app.evaluation_recall measure."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from app.present import Json, json_text
from cli import terminal
from cli.chosen_base import chosen, naming_places, working_directory
from cli.index_verb import terminated_like_interrupted
from cli.verbs import ConfigOption
from domain.errors import UsageError

eval_app = typer.Typer(
    name="eval",
    help="Measure how good the answers are: on a test collection, or on this index.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
JsonFileOption = Annotated[
    str, typer.Option("--json", metavar="FILE", help="Write JSON into FILE; - prints it instead of the table.")
]


@eval_app.command("run")
def run_verb(
    collection: Annotated[
        Path, typer.Option("--collection", metavar="DIR", help="documents.jsonl, queries.tsv and qrels.tsv are in it.")
    ],
    local: Annotated[
        bool, typer.Option("--local", help="Measure meaning too, with the model that needs no server.")
    ] = False,
    json_file: JsonFileOption = "",
    config: ConfigOption = None,
) -> int:
    """Measure the ranking on a test collection; the index itself is neither read nor changed.

    The collection is indexed into a temporary folder. Meaning is measured where embeddings are configured.
    """
    from app.evaluation import evaluate
    from app.evaluation_vectors import local_embeddings
    from app.present_evaluation import asking_line, evaluation_json, evaluation_text
    from app.present_index import embedding_notice_text
    from app.progress import RunProgress
    from cli.progress import shown

    loaded = chosen(config)
    target = _json_target(json_file)
    progress = RunProgress()
    with terminated_like_interrupted(), ExitStack() as display:
        display.enter_context(shown(progress, is_quiet=False))

        def announce(mode: str, queries: int) -> None:
            display.close()  # the run of indexing is over
            terminal.tell(asking_line(mode, queries))

        evaluation = evaluate(
            loaded.settings,
            _absolute(collection),
            embeddings=local_embeddings() if local else loaded.settings.embeddings,
            progress=progress,
            announce=announce,
            announce_embedding=lambda notice: terminal.tell(embedding_notice_text(notice)),
        )
    _print(evaluation_text(evaluation), evaluation_json(evaluation), json_file, target)
    return 0


@eval_app.command("recall")
def recall_verb(
    samples: Annotated[int, typer.Option("--samples", metavar="N", help="Stored vectors to look around.")] = 200,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="FILE", help="Queries to ask as well, one a line.", show_default=False),
    ] = None,
    json_file: JsonFileOption = "",
    config: ConfigOption = None,
) -> int:
    """Compare what a search by meaning finds in this index with what comparing every vector finds."""
    from app.evaluation_recall import measure_recall, read_queries
    from app.present_evaluation import recall_json, recall_text

    loaded = chosen(config)
    target = _json_target(json_file)
    asked = read_queries(_absolute(queries)) if queries is not None else ()
    with naming_places(loaded), terminated_like_interrupted():
        report = measure_recall(loaded.settings, samples=samples, queries=asked)
    _print(recall_text(report), recall_json(report), json_file, target)
    return 0


def _absolute(path: Path) -> Path:
    return working_directory() / path.expanduser()


def _json_target(written: str) -> Path | None:
    """Where the JSON goes; refused before anything is measured. None: nowhere, or to standard output."""
    if written in ("", "-"):
        return None
    target = _absolute(Path(written))
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(f"{target} cannot be written: no file in a folder", hint="write --json FILE, or --json -")
    return target


def _print(text: str, value: Json, json_file: str, target: Path | None) -> None:
    if json_file == "-":
        terminal.write_json(json_text(value))
        return
    if target is not None:
        target.write_text(json_text(value), encoding="utf-8")
    terminal.write(text)

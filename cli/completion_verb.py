"""`knowledge completion`: prints a shell's script, or the names that such a script asks for while one types."""

from app.present_safe import name
from cli import terminal
from cli.arguments import CONFIG_FLAG, Arguments, TableVerb
from cli.chosen_base import chosen
from domain.errors import UsageError
from domain.layout import BaseLayout

SHELLS = ("bash", "zsh", "fish")
NAMES = ("roots", "runs")
RUNS_OFFERED = 20
HELP = """Print the script by which a shell completes verbs, options, names of roots and ids of runs.

Write it where the shell looks for such scripts, once, and again after an update of the program. `roots` and `runs`
print what the script asks for while one types: a name a line.
"""


def call(arguments: Arguments) -> int:
    asked = arguments.words[0]
    if asked in SHELLS:
        from cli.completion_scripts import SCRIPTS
        from cli.completion_table import completed_verbs, group_summaries

        terminal.write(SCRIPTS[asked](completed_verbs(), group_summaries()))
        return 0
    if asked not in NAMES:
        raise UsageError(
            f"there is no script for {asked[:40]!r}", hint=f"there are: {', '.join(SHELLS)}; and {', '.join(NAMES)}"
        )
    for line in _names(asked, arguments.text("config")):
        terminal.write(f"{line}\n")
    return 0


def _names(asked: str, config: str | None) -> list[str]:
    """Names that can be typed as they are; of a run what it was comes behind a tab."""
    from store.files import lstat_or_none
    from store.state import SqliteStateStore

    layout = BaseLayout(chosen(config).settings.home)
    if lstat_or_none(layout.state) is None:
        return []
    state = SqliteStateStore(layout.state, read_only=True)
    try:
        if asked == "roots":
            names = [record.name for record in state.roots()]
            return [one for one in names if one == name(one)]
        return [f"{run.id}\t{run.kind}, {run.state}" for run in state.runs(RUNS_OFFERED)]
    finally:
        state.close()


TABLE_VERBS = (
    TableVerb(
        "completion", HELP, (CONFIG_FLAG,), call, words_metavar="SHELL", words_help="bash, zsh or fish.",
        words_choices=SHELLS, least_words=1, most_words=1,
    ),
)  # fmt: skip

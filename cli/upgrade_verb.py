"""`knowledge upgrade`: parses, shows the progress and prints the report. The work is done in app.upgrading."""

from typing import Annotated

import typer

from app.present import json_text
from app.progress import RunProgress
from app.tiers import tier_now
from app.upgrade_report import UpgradeRequest
from cli import terminal
from cli.chosen_base import chosen, naming_places
from cli.verbs import ConfigOption, JsonOption, verb_app

app = verb_app()


@app.command("upgrade")
def upgrade_verb(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would be taken over.")] = False,
    re_embed: Annotated[
        bool, typer.Option("--re-embed", help="Take no vector over: embed every text anew, from the beginning.")
    ] = False,
    allow_mass_delete: Annotated[
        bool, typer.Option("--allow-mass-delete", help="Let go of documents that the new index does not have.")
    ] = False,
    is_quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Make an index of an older format anew beside the old one, which answers until then."""
    from app.present_index import embedding_notice_text
    from app.present_upgrade import upgrade_json, upgrade_text
    from app.upgrading import upgrade
    from cli.index_verb import terminated_like_interrupted
    from cli.progress import shown

    loaded = chosen(config, absent_roots="refuse")
    progress = RunProgress()
    request = UpgradeRequest(dry_run=dry_run, re_embed=re_embed, allow_mass_delete=allow_mass_delete)
    with naming_places(loaded), terminated_like_interrupted(), shown(progress, is_quiet=is_quiet or as_json):
        report = upgrade(
            loaded.settings, request, progress, lambda notice: terminal.tell(embedding_notice_text(notice))
        )
    tier = tier_now(loaded.settings)
    if as_json:
        terminal.write_json(json_text(upgrade_json(report, tier)))
    else:
        terminal.write(upgrade_text(report, tier))
    return report.exit_status

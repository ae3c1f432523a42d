"""`knowledge verify`: parses and prints; app.verifying looks."""

from typing import TYPE_CHECKING

from app.beside_service import is_service_up
from app.present_checks import verify_json, verify_text
from app.verifying import VerifyReport, verify
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, naming_places
from cli.index_verb import no_service_to_detach_to
from cli.reports import print_report, report_of_service
from domain.errors import NotBuiltError
from domain.layout import BaseLayout

if TYPE_CHECKING:
    from app.config import Loaded

HELP = """Check that the index is whole; changes nothing."""
FLAGS = (
    Flag("--deep", bool, "Read every text, and compare it with its hash."),
    Flag("--detach", bool, "With a service: hand it over, and do not wait for its end."),
    JSON_FLAG,
    CONFIG_FLAG,
)


def call(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    is_deep, as_json = arguments.flag("deep"), arguments.flag("json")
    if is_service_up(BaseLayout(loaded.settings.home)):
        return _by_service(loaded, is_deep, detaches=arguments.flag("detach"), as_json=as_json)
    if arguments.flag("detach"):
        raise no_service_to_detach_to()
    return verify_here(loaded, is_deep, as_json=as_json)


def verify_here(loaded: "Loaded", deep: bool, *, as_json: bool) -> int:
    report = verify(loaded.settings, deep)
    if not report.is_built:
        with naming_places(loaded):
            raise NotBuiltError("")
    return _shown(loaded, report, as_json=as_json)


def _by_service(loaded: "Loaded", deep: bool, *, detaches: bool, as_json: bool) -> int:
    from app.run_request import RunRequest

    request = RunRequest(kind="verify", deep=deep)
    found = report_of_service(loaded, request, VerifyReport, detaches=detaches, as_json=as_json)
    return found if isinstance(found, int) else _shown(loaded, found, as_json=as_json)


def _shown(loaded: "Loaded", report: VerifyReport, *, as_json: bool) -> int:
    print_report(report, loaded.settings, verify_text, verify_json, as_json=as_json)
    return report.exit_status


TABLE_VERBS = (TableVerb("verify", HELP, FLAGS, call),)

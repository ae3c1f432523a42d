"""`knowledge status --exit-code`: the status with a verdict in front, for cron and monitoring."""

import time

from app.present import error_text, json_text
from app.present_base import not_built_status_json, status_json, status_text
from app.present_verdict import verdict_json, verdict_line
from app.status import base_status
from app.verdict import overdue_schedules, verdict_of, verdict_of_error
from cli import terminal
from cli.arguments import Arguments
from cli.chosen_base import chosen, opened
from domain.errors import KnowledgeError, NotBuiltError


def call_check(arguments: Arguments) -> int:
    """0, 1 or 2 (app.verdict.Level): an error of ours is critical, whatever its own exit status."""
    as_json = arguments.flag("json")
    try:
        loaded = chosen(arguments.text("config"))
        try:
            with opened(loaded) as base:
                now_ns = time.time_ns()
                status = base_status(base, loaded.settings)
                verdict = verdict_of(status, overdue_schedules(base, loaded.settings, now_ns))
        except NotBuiltError as error:
            if not as_json:
                raise
            verdict = verdict_of_error(error)
            value = not_built_status_json(error, loaded.located, loaded.settings)
            terminal.write_json(json_text({"verdict": verdict_json(verdict), **value}))
            return verdict.level
    except KnowledgeError as error:
        verdict = verdict_of_error(error)
        if as_json:
            told = {"code": error.code, "message": error.message, "hint": error.hint}
            terminal.write_json(json_text({"verdict": verdict_json(verdict), "error": told}))
        else:
            terminal.write(f"{verdict_line(verdict, error)}\n")
            terminal.tell(error_text(error))
        return verdict.level
    if as_json:
        value = status_json(status, loaded.located, loaded.settings, now_ns)
        terminal.write_json(json_text({"verdict": verdict_json(verdict), **value}))
    else:
        terminal.write(f"{verdict_line(verdict)}\n")
        terminal.write(status_text(status, loaded.located, loaded.settings, now_ns))
    return verdict.level

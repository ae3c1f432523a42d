"""`knowledge schedules`: parses and prints; app.schedule_status looks."""

import time

from app.present import json_text
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, TableVerb
from cli.chosen_base import chosen, tell_notes

HELP = """List the schedules: when each runs next, and what came of its last run.

Times stand on the clock of each schedule's own zone. Schedules are written in the configuration, and run while a
service runs.
"""


def call(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    from app.present_schedules import schedules_json, schedules_text
    from app.schedule_status import schedules_status

    now_ns = time.time_ns()
    status = schedules_status(loaded.settings, now_ns)
    if arguments.flag("json"):
        terminal.write_json(json_text(schedules_json(status, loaded.located, loaded.settings, now_ns)))
    else:
        terminal.write(schedules_text(status, loaded.located, loaded.settings, now_ns))
        tell_notes(loaded)
    return 0


TABLE_VERBS = (TableVerb("schedules", HELP, (JSON_FLAG, CONFIG_FLAG), call),)

"""Results of checks in three states: what was not run never reads as passed (S0-52)."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class CheckState(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not_run"


class CheckResult(Struct, frozen=True):
    """One check. `name` is stable; `detail` says what was seen, `hint` names the command that mends it."""

    name: str
    state: CheckState
    detail: str = ""
    hint: str = ""
    is_fatal: bool = True  # a failure of it decides the exit status
    table: str = ""
    documents: tuple[str, ...] = ()  # the first few that are concerned, in printable form


def passed(name: str, detail: str = "", *, table: str = "") -> CheckResult:
    return CheckResult(name, CheckState.PASS, detail, table=table)


def failed(
    name: str,
    detail: str,
    hint: str = "",
    *,
    is_fatal: bool = True,
    table: str = "",
    documents: Iterable[str] = (),
) -> CheckResult:
    return CheckResult(name, CheckState.FAIL, detail, hint, is_fatal, table, tuple(documents))


def not_run(name: str, detail: str, hint: str = "", *, table: str = "") -> CheckResult:
    return CheckResult(name, CheckState.NOT_RUN, detail, hint, table=table)


def has_failed(results: Iterable[CheckResult], *, fatal_only: bool = False) -> bool:
    return any(result.state is CheckState.FAIL and (result.is_fatal or not fatal_only) for result in results)


def was_left_out(results: Iterable[CheckResult]) -> bool:
    return any(result.state is CheckState.NOT_RUN for result in results)

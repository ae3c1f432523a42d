"""`verify` and `doctor` in words and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Literal

from app.present import Json, count, duration, tier_line
from app.present_safe import name, one_line
from app.verifying import VerifyReport
from domain.checks import CheckResult, CheckState, has_failed, was_left_out
from domain.status import Tier

CHECK_SIGNS = {CheckState.PASS: "ok      ", CheckState.FAIL: "FAILED  ", CheckState.NOT_RUN: "not run "}
_WARNING_SIGN = "warning "  # failed, but not fatal
_MAX_DETAIL = 300

ChecksStatus = Literal["pass", "warning", "not_run", "fail"]
"""`warning`: some have failed, and none that is fatal; `not_run`: none has failed, and not all were run."""


def verify_text(report: VerifyReport, tier: Tier) -> str:
    lines = [tier_line(tier), *_check_lines(report.results)]
    match checks_status(report.results):
        case "fail":
            verdict = "the index is not whole"
        case "warning":
            verdict = "the index is whole, and yet not what it should be"
        case "not_run":
            verdict = "nothing wrong was seen, but not everything could be looked at"
        case _:
            verdict = "the index is whole" if report.is_deep else "nothing wrong was seen; --deep reads every text too"
    lines += [f"index: {name(str(report.home))}", f"{verdict} (took {duration(report.elapsed_s)})"]
    return "\n".join(lines) + "\n"


def verify_json(report: VerifyReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": checks_status(report.results),
        "home": str(report.home),
        "exit_status": report.exit_status,
        "is_deep": report.is_deep,
        "is_built": report.is_built,
        "checks": checks_json(report.results),
        "elapsed_s": round(report.elapsed_s, 3),
    }


def doctor_text(results: Sequence[CheckResult], tier: Tier) -> str:
    lines = [tier_line(tier), *_check_lines(results)]
    failures = sum(result.state is CheckState.FAIL for result in results)
    left_out = sum(result.state is CheckState.NOT_RUN for result in results)
    match checks_status(results):
        case "fail":
            verdict = f"{count(failures, 'problem')} found"
        case "warning":
            verdict = f"nothing serious; {count(failures, 'warning')}"
        case "not_run":
            verdict = "nothing wrong was seen"
        case _:
            verdict = "all is well, as far as this looks: `knowledge verify` checks what the index holds"
    not_run = f"; {count(left_out, 'check was', 'checks were')} not run" if left_out else ""
    return "\n".join([*lines, f"{verdict}{not_run}"]) + "\n"


def doctor_json(results: Sequence[CheckResult], tier: Tier, exit_status: int) -> Json:
    return {
        "tier": tier_line(tier),
        "status": checks_status(results),
        "exit_status": exit_status,
        "checks": checks_json(results),
    }


def checks_status(results: Sequence[CheckResult]) -> ChecksStatus:
    """All of the checks in one word. What was not run never reads as passed."""
    if has_failed(results, fatal_only=True):
        return "fail"
    if has_failed(results):
        return "warning"
    return "not_run" if was_left_out(results) else "pass"


def checks_json(results: Sequence[CheckResult]) -> list[Json]:
    return [
        {
            "name": result.name,
            "state": result.state.value,
            "detail": result.detail,
            "hint": result.hint,
            "is_fatal": result.is_fatal,
            "table": result.table or None,
            "documents": list(result.documents),
        }
        for result in results
    ]


def _check_lines(results: Sequence[CheckResult]) -> Iterator[str]:
    width = max((len(check_label(result)) for result in results), default=0)
    for result in results:
        is_warning = result.state is CheckState.FAIL and not result.is_fatal
        sign = _WARNING_SIGN if is_warning else CHECK_SIGNS[result.state]
        yield f"{sign} {check_label(result):<{width}}  {one_line(result.detail, _MAX_DETAIL)}".rstrip()
        if result.documents:
            yield f"{'':9}concerns {', '.join(map(name, result.documents))}"
        if result.hint and result.state is not CheckState.PASS:
            yield f"{'':9}hint: {one_line(result.hint, _MAX_DETAIL)}"


def check_label(result: CheckResult) -> str:
    """`full_text:chunks_fts` as `full text of chunks_fts`."""
    kind, _, what = result.name.partition(":")
    label = kind.replace("_", " ")
    of = what or result.table
    return f"{label} of {name(of)}" if of else label

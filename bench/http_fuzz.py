"""Requests that nobody would send, to a `knowledge serve` of its own: what it answers, and what it takes for that.

    python -m bench.http_fuzz [--requests N] [--seed N] [--only api,page,mcp,raw] [--batch N] [--at-once N]

Each batch is drawn from a seed of its own, which is printed: `--seed S --requests BATCH` sends that one again. Exit 1
where there was a fault. Requests come from our OpenAPI document (tests.support.fuzz_requests), with values that fit it
and values that do not, and are raw bytes (tests.support.fuzz_bytes).
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fuzz_asking import Report, ask_all, openapi_of
from tests.support.fuzz_bytes import requests_of
from tests.support.fuzz_service import FuzzService, fuzz_service

HANG_S = 2.0
DOCUMENTS = 120
SHOWN_FAULTS = 30


def fuzz(service: FuzzService, asked: argparse.Namespace) -> Report:
    document, report = openapi_of(service), Report()
    kinds = asked.only.split(",")
    sent, number = 0, asked.seed
    while sent < asked.requests:
        requests = [one for kind in kinds for one in requests_of(kind, document, number, asked.batch // len(kinds))]
        faults = len(report.faults)
        began_s = time.monotonic()
        ask_all(service, requests, document, report, hang_s=HANG_S, at_once=asked.at_once)
        took_s = time.monotonic() - began_s
        sent += len(requests)
        print(
            f"seed {number}: {sent:,} sent, {len(requests) / took_s:.0f} a second; memory"
            f" {service.memory_kb() // 1024} MB, {service.files()} files, {service.threads()} threads;"
            f" faults {len(report.faults) - faults}",
            flush=True,
        )
        number += 1
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="api,page,mcp,raw")
    parser.add_argument("--at-once", type=int, default=4)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="knowledge-fuzz-") as folder,
        fuzz_service(Path(folder), most_documents=DOCUMENTS) as service,
    ):
        report = fuzz(service, asked)
        files = service.files()
    print(report.words())
    print(f"files open at the end: {files}; lines in its log: {len(service.log)}")
    for fault, request, answer in report.faults[:SHOWN_FAULTS]:
        print(f"--- {fault}\n{request.kind}: {request.data[:1_200]!r}\n{answer[:700]!r}")
    print(*[line for line in service.log if '"error"' in line][:SHOWN_FAULTS], sep="")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""A pipeline to the queue that the end of a run has cut off says nothing on the terminal of a user."""

import subprocess
import sys
from pathlib import Path

CUT_OFF = """
import asyncio, gc
from redis.asyncio import Redis
if {with_us}:
    import scheduler.queue.client
async def main():
    pipeline = Redis().pipeline()
    pipeline.connection = object()
    del pipeline
    gc.collect()
    asyncio.get_running_loop().call_exception_handler({{"message": "something else"}})
asyncio.run(main())
"""


def told_by(*, with_us: bool) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CUT_OFF.format(with_us=with_us)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stderr


def test_a_pipeline_that_was_cut_off_is_not_told_of() -> None:
    """Only that: what else a loop has to say of a fault is said."""
    assert "Unclosed Pipeline client" in told_by(with_us=False)
    told = told_by(with_us=True)
    assert "Pipeline" not in told
    assert "something else" in told

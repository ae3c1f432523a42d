"""How deep the tests of faults go: a sample in `make test`, everything in `make faults`.

KNOWLEDGE_TEST_DEPTH=nightly asks for the deep form; KNOWLEDGE_TEST_SEED=N for other random choices than the usual ones.
"""

import os

IS_NIGHTLY = os.environ.get("KNOWLEDGE_TEST_DEPTH", "") == "nightly"
SEED = int(os.environ.get("KNOWLEDGE_TEST_SEED", "20261130"))


def scaled(sample: int, nightly: int) -> int:
    """How many of something are tried at the depth that was asked for."""
    return nightly if IS_NIGHTLY else sample

import pytest

from domain.units import parse_duration_s, parse_size_bytes


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30.0),
        ("10m", 600.0),
        ("10min", 600.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("500ms", 0.5),
        ("2d", 172800.0),
        ("1.5s", 1.5),
        ("30", 30.0),
        (" 30s ", 30.0),
        (30, 30.0),
        (0.25, 0.25),
        (0, 0.0),
    ],
)
def test_durations(written: str | float, seconds: float) -> None:
    assert parse_duration_s(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "",
        "s",
        "30x",
        "30s!",
        "-30s",
        "-1",
        -1,
        "1s-2s",
        True,
        float("nan"),
        float("inf"),
        "nan",
        "9" * 50,
        10**400,
    ],
)
def test_what_is_no_duration(written: str | float) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_duration_s(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("512KiB", 524288),
        ("512 kib", 524288),
        ("1MB", 1_000_000),
        ("1.5MiB", 1_572_864),
        ("2GiB", 2 * 1024**3),
        ("10B", 10),
        ("524288", 524288),
        (524288, 524288),
        (1024.0, 1024),
    ],
)
def test_sizes(written: str | float, size: int) -> None:
    assert parse_size_bytes(written) == size


@pytest.mark.parametrize(
    "written", ["", "MB", "1XB", "512K", "-1MB", -1, "1.5", 1.5, "0.3KiB", False, float("inf"), "1MB 2KB"]
)
def test_what_is_no_size(written: str | float) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_size_bytes(written)

"""Numbers in paths: as many digits as state.db counts with. What is longer is no path of ours, so that nobody makes a
number of 5,000 digits, which Python refuses to."""

from starlette.convertors import IntegerConvertor, register_url_convertor


class RunNumbers(IntegerConvertor):
    regex = "[0-9]{1,19}"


def take_run_numbers() -> None:
    """`{run:int}` means this from now on, in routes that are made then."""
    register_url_convertor("int", RunNumbers())

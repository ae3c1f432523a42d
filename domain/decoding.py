"""What decoding something that was not written here may raise: named once, so that no reader forgets a part of it."""

import msgspec

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Of a msgspec decoder: no such format or no such fields, bytes that are no UTF-8, more levels than can be entered."""

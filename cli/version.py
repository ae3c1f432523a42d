"""The version, without a look at the installed metadata: that costs more than all else of `--version`."""

VERSION = "0.1.0"

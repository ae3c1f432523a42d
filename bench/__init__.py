"""Measurements against floors of the same run: `make bench CORPUS=FOLDER`."""

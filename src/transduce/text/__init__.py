"""Reads parallel text, cleans it and splits off validation pairs."""

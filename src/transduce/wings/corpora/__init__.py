"""Corpora: download them by name, check them, repair them."""

"""Completes translations whose beginning, and perhaps end, a person has written."""

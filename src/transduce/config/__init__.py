"""Defines the options, their defaults, and a table of defaults by corpus size."""

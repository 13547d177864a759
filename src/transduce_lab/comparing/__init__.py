"""Compares models: training runs with other options, and their outputs by kinds of sentences."""

"""Compares models: trainings with other options, and their outputs by kinds of sentences."""

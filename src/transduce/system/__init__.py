"""Errors, messages, files, locks, the training journal, machine settings and profiling."""

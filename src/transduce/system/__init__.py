"""System services: errors, messages, files, locks, the journal, the machine, profiling."""

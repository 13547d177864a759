"""System services: errors, files, locks, the journal, the machine, profiling."""

"""What the rest stands on: files, locks, the journal, the machine, profiling, errors."""

"""Download corpora by name, and check and repair corpora."""

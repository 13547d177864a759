"""Downloads, checks and repairs corpora."""

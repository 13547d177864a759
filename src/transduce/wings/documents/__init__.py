"""Document formats: files with slots for texts, and documents read as parallel text."""

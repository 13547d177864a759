"""Document formats: files with slots for translations, and parallel text from documents."""

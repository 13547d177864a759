"""The demo: a phrasebook of English and German, and a model trained on it in minutes."""

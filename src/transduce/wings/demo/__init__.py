"""The demo: trains a small model on the phrasebook, English to German, in minutes."""

"""Decoding with trained models: search, translation of texts, and the probability of given translations."""

"""CTranslate2 as an engine: convert a model, compare it with our own search, keep it in a cache."""

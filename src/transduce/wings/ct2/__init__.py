"""CTranslate2 as an engine: convert a model, compare its translations with our own search's, and cache it."""

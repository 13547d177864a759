"""CTranslate2 as an engine: converts a model, checks the engine's translations, and caches the engine."""

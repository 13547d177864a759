"""Text to ids and back, the store that ids lie in, and the plan of batches; no torch."""

"""One training put together, and a model measured: the floors below, combined."""

"""A model for other programs, which is written only when it has translated as ours does."""

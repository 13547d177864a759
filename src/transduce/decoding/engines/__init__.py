"""What searches: our own beam search, and faster ones for the models that they know."""

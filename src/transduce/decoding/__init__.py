"""From text to text with a trained model: search, translation, the probability of given translations."""

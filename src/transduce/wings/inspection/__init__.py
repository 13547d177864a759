"""Web pages and plots of a model's attention, search and training."""

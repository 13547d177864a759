"""What a model attends to and how it searches, as pages and plots."""

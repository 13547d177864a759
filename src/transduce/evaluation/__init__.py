"""How good translations are: scores that others can compare with, and the perplexity of references."""

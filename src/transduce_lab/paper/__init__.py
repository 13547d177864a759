"""Computes the tables and figures of the paper, and compares them with the printed values."""

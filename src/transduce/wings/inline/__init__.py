"""Splits texts into sentences and masks tags and placeholders before translation; restores the texts afterwards."""

"""Converts models for CTranslate2, and translates with the converted models."""

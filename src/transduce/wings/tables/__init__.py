"""Pairs from tables: Python objects and Parquet files."""

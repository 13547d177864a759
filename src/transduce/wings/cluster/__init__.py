"""Prepares a corpus or translates a file in shards, by several processes or machines, or on Ray."""

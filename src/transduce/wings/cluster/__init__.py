"""Sharded preparation of a corpus or translation of a file, by several processes or machines, or on Ray."""

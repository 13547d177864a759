"""Translation memories: units of text that people have translated, in a database that finds similar ones."""

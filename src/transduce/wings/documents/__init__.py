"""Document formats: translates the texts in files of these formats, and reads parallel text from such files."""

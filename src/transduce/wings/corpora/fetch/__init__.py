"""`transduce fetch`: download, verify and unpack known corpora by name."""

"""Downloads, verifies and unpacks known corpora by name (`transduce fetch`)."""

"""One file per command: read the arguments, call the folders below, print.

CONTRIBUTING.md says how to add one. A command's parameters are its options and its docstring is its help. Results go to
the standard output, messages and progress to the standard error (`system/console.py`). Whatever makes `--help` slow
(torch, numpy, sacrebleu, matplotlib, and our modules that need them) is imported inside the function;
`tests/commands/test_cli.py` checks this.
"""

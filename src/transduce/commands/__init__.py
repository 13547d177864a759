"""One file per command: read the arguments, call the floors below, print.

To add a command `name`, write `commands/name.py` with one function `name`:

- positional arguments stand before `/`, options after `*`; every one is typed;
- the docstring is the help: a sentence, if need be a paragraph, and under `Args:` a line per argument;
- a parameter `assignments: Assignments = ()` (from `commands/options.py`) takes the bare
  `section.key=value` arguments, wherever they stand, for `config.parse_assignments`;
- results go to the standard output, progress through `journal.say` and `journal.Display`;
- mistakes of the user raise UserError; the command line prints the sentence and exits with status 2;
- what makes `--help` slow (torch, numpy, sacrebleu, matplotlib and the modules of ours that need them)
  is imported inside the function; `tests/test_cli.py` holds this.

Then name it in `COMMANDS` of `cli.py`, at the place where `transduce --help` shall list it.
"""

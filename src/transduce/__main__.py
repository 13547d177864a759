"""Run the command line for `python -m transduce`, and in every process that `torchrun -m transduce` starts."""

from transduce.cli import main

if __name__ == "__main__":
    main()

"""Run the command line for `python -m transduce` and for `torchrun -m transduce`."""

from transduce.cli import main

if __name__ == "__main__":
    main()

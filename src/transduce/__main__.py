"""`python -m transduce`, which `torchrun -m transduce` starts many times."""

from transduce.cli import main

if __name__ == "__main__":
    main()

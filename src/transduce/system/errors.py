"""The exception for mistakes that a user can correct."""


class UserError(Exception):
    """A mistake that the user can correct. The message says what is wrong, where (file, line, option) and what to do.

    The command line prints the message without a traceback and exits with status 2. Any other exception is a bug in
    transduce, and its traceback is printed.
    """

    def __init__(self, text: str, *, option: str = "") -> None:
        """`option` is the option to change, such as "data.valid"; the command line adds its flag to the message."""
        super().__init__(text)
        self.option = option

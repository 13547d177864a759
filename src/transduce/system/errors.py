"""A user's mistake, as one sentence."""


class UserError(Exception):
    """A mistake that the user can correct: what is wrong, where (file, line, option), what to do.

    The command line prints the sentence without a traceback and exits with status 2. Every other exception is a fault
    of this program and keeps its traceback.
    """

    def __init__(self, text: str, *, option: str = "") -> None:
        """option: the name of what to change, such as "data.valid" or "out"; the command line adds its flag."""
        super().__init__(text)
        self.option = option

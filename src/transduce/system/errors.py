"""The exception for mistakes that a user can correct."""


class UserError(Exception):
    """A mistake that the user can correct. The message says what is wrong and what to do.

    The command line prints the message without a traceback and exits with status 2.
    """

    def __init__(self, text: str, *, option: str = "") -> None:
        """`option` names the configuration option that the user should change, such as "data.valid"."""
        super().__init__(text)
        self.option = option


class DamagedError(UserError):
    """A file is missing or damaged: trying again can't help."""


class NotInstalledError(UserError):
    """A part of transduce, or a package that it needs, is not installed."""


class UnusableModelError(UserError):
    """The files of a model were damaged or replaced after it was loaded."""


class DivergedError(UserError):
    """A training diverged: its options are unsuitable, and trying again can't help."""

"""What a user did wrong, as one sentence."""


class UserError(Exception):
    """A mistake that the user can mend: what is wrong, where (file, line, option), what to do.

    The command line prints the sentence without a traceback and exits with status 2. Everything
    else that is raised is our mistake and keeps its traceback.
    """

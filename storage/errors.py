"""The one exception a user can mend: bad input, said in one line."""


class InputError(ValueError):
    """What was expected, what was found, what to do; the command prints it and exits with code 2."""

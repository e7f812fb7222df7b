"""What each command of `suffice` takes and prints: one command, or one family, a module."""

"""Documents as tables for people. Pure functions of the JSON that a command prints."""

"""Scores many uniform layouts at once."""

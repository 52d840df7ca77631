"""Measured training runs: how they are read, predicted and scored."""

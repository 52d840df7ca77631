"""Sheets of a cluster's own."""

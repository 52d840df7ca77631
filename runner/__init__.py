"""Executes a plan with torch processes on CPU and compares it with a one-process reference."""

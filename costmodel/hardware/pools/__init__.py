"""The pools of a cluster document."""

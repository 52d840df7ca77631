"""What simpler planners would do on the same cluster: one file each, found by walking."""

"""What has to execute a plan: one file for each target, found by walking this package."""

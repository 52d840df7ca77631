"""Data only: sheets of chips and links, and whole clusters, one YAML file each."""

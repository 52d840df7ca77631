"""Job documents."""

"""The bundled sheets of chips and links."""

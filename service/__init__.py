"""The faces of haplan: command line and HTTP service."""

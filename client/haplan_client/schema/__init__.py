"""The documents on the wire: what is sent to the service and what it answers."""

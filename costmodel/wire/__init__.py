"""From raw documents to checked wire documents."""

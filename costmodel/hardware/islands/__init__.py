"""What joins the islands of a cluster document."""

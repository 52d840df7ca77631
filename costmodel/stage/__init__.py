"""What one stage costs under every option: compute, communication inside it, bytes it keeps."""

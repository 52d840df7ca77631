"""Training stacks: what their software reaches of the hardware and how it runs a model."""

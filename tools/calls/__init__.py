"""Calls: what the model may call, what a call means, whether it may run, and running it once."""

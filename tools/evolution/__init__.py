"""Learning from ended tasks: what is kept of them, what it teaches, and how it is fed back."""

"""The policy: whether a call may run, may not, or waits for a person."""

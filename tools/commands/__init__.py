"""Commands: the one door that runs them, and which of them verify a workspace."""

"""A run to be looked at: its timeline, the machine it walked through, and a page of both."""

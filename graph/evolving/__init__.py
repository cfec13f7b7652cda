"""Learning beside runs: bounded, on a loop of its own, and waited for at the end."""

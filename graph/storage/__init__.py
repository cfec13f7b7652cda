"""Postgres: the one door to it, the checkpointer on it, and the embedded server."""

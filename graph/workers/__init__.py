"""Threads that are run by other processes: a queue in the same database, and who works it off."""

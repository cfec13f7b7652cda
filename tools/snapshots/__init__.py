"""Snapshots of a workspace: taken, compared, and put back, without touching the user's git."""

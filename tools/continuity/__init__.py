"""Asking for what a call lacks, and going on with it once that was said."""

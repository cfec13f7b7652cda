"""Everything that is remembered: the typed state, its records, budgets and settings."""

if __name__ != "daruma.state":  # stored types are found again by their full module name
    raise ImportError(f"import daruma.state, not {__name__}")

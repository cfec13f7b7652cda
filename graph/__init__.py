"""The machine: its table, its routes, building it, and its faces."""

if __name__ != "daruma.graph":  # stored types are found again by their full module name
    raise ImportError(f"import daruma.graph, not {__name__}")

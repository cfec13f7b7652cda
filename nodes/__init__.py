"""One file per node of the machine, each with the node's name."""

if __name__ != "daruma.nodes":  # stored types are found again by their full module name
    raise ImportError(f"import daruma.nodes, not {__name__}")

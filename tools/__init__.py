"""What the model may call, and how a call is resolved, authorised and run."""

if __name__ != "daruma.tools":  # stored types are found again by their full module name
    raise ImportError(f"import daruma.tools, not {__name__}")

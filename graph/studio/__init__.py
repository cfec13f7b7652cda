"""The graph as LangGraph's development server runs it, for Studio and for chat clients.

``langgraph.json`` names what is in the module ``entry``; nothing imports from here.
"""

__all__: list[str] = []

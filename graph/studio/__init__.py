"""The graph as LangGraph's development server runs it, for Studio and for chat clients.

``langgraph.json`` names the modules ``entry`` and ``storage``; nothing imports from here.
"""

__all__: list[str] = []

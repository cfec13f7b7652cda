"""The graph as LangGraph's development server runs it, for Studio and for chat clients (FA-02)."""

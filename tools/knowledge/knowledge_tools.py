"""The tools of the knowledge set. ``web_search`` is the application's own, if it has one."""

from typing import Final

from daruma.tools.knowledge.graph_context import GraphContextArgs, graph_context
from daruma.tools.knowledge.search_tools import (
    HybridSearchArgs,
    SearchKnowledgeArgs,
    hybrid_search,
    search_knowledge,
)
from daruma.tools.shipped_tool import shipped_tool
from daruma.tools.tool import Tool

KNOWLEDGE_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool(
        "search_knowledge", SearchKnowledgeArgs, "none", search_knowledge, toolset="knowledge"
    ),
    shipped_tool("hybrid_search", HybridSearchArgs, "none", hybrid_search, toolset="knowledge"),
    shipped_tool(
        "get_knowledge_graph_context",
        GraphContextArgs,
        "none",
        graph_context,
        toolset="knowledge",
    ),
)

"""What is remembered from one task to the next, kept in the graph's store."""

"""Teams: templates of experts, the worktrees they work in, and merging what they did."""

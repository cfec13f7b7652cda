"""Skills: folders with a ``SKILL.md`` that the model can read up when a task asks for it."""

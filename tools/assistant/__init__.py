"""The assistant toolset: todos, scheduled tasks, goals and reminders."""

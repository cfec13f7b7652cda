"""The command line: its commands, what they show while a task runs, and the demo."""

"""Chat models by role: the real client, and the strict scripted one."""

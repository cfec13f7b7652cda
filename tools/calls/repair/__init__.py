"""Repair by rules: the one reading that a broken text of arguments has, or none.

Text, grammar and arguments are read without asking anybody (TL-09, TL-10); what a model may mend
of the rest is checked here, too.
"""

from daruma.tools.calls.repair._json_text import json_readings, strip_fence

__all__ = ["json_readings", "strip_fence"]

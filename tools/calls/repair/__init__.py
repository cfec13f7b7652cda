"""Repair by rules: the one reading that a broken text of arguments has, or none.

Text, grammar and arguments are read without asking anybody (TL-09, TL-10); what a model may mend
of the rest is checked here, too.
"""

from daruma.tools.calls.repair._by_rules import read_object, read_structured, strip_fence

__all__ = ["read_object", "read_structured", "strip_fence"]

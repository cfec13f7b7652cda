"""Prints the JSON Schema of all events: ``python -m daruma.graph.events_schema``."""

import sys

from daruma.graph.reference_files import reference_files
from daruma.state.events_schema import SCHEMA

if __name__ == "__main__":
    sys.stdout.write(reference_files()[SCHEMA])

"""What a notebook shows of values that know nothing of notebooks: results and plans."""

import sys
from typing import Any

from daruma.graph.pictures.card_html import plan_card, result_card
from daruma.state.plan import Plan
from daruma.state.result import TaskResult


def show_in_notebooks() -> None:
    """Have a running notebook show results and plans as cards; do nothing anywhere else."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        html = shell.display_formatter.formatters["text/html"]
        html.for_type(TaskResult, result_card)
        html.for_type(Plan, plan_card)

"""What a question shows of a long text, and how long ago something was."""

from daruma.graph.command_line._output import Line, cut

# --- Long texts: their ends are shown, and what is left out is counted.


def test_what_is_left_out_is_counted() -> None:
    """The lines that are shown and those that are counted are all there are."""
    lines = [Line("payload", str(number)) for number in range(500)]

    shown = cut(lines, 100)

    assert [shown[0], shown[-1]] == [lines[0], lines[-1]]
    (said,) = [line.text for line in shown if line.mark == "alarm"]
    assert said.startswith("400 lines are left out here")
    assert len(shown) == 101

"""Whether a text that ends early can have lost anything but its closing brackets."""

from typing import Any

from daruma.tools.repair.schema import Schema, misfit, properties, takes_any_key, variants


def lost_nothing(value: Any, unclosed: int, schema: Schema) -> bool:
    """Whether all that could have stood in the containers open at the end is there.

    That holds where each of them is an object with every property of its schema given, and no
    other key possible. A list could always have gone on.
    """
    at: Any = schema
    node = value
    for _ in range(unclosed):
        known = _keys(at, schema)
        if not isinstance(node, dict) or not node or known is None or node.keys() != known.keys():
            return False
        last = next(reversed(node))
        node, at = node[last], known[last]
    return misfit(value, schema, schema) is None


def _keys(schema: Any, root: Schema) -> dict[str, Any] | None:
    objects = [each for each in variants(schema, root) if properties(each)]
    if len(objects) != 1 or takes_any_key(objects[0]):
        return None
    return dict(properties(objects[0]))

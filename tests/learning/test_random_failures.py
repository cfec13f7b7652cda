"""Noise changes no prompt, but for those of a comparison that goes on."""

import pytest
from tests.learning.random_failures import HOSTILE, OPPOSED, noise

from daruma.tools.model_requests import HEAD


@pytest.mark.parametrize("seed", range(3))
async def test_noise_brings_nothing_into_use(seed: int) -> None:
    """EV-03: thirty tasks twice, with failures by chance, contradictions, outages and attacks."""
    found = await noise(seed)
    tested = {each.id: each.text for each in found.variants}

    assert all(each.status in ("testing", "rejected") for each in found.variants)
    assert set(tested.values()) <= set(OPPOSED)
    for lessons, prompt, control in found.prompts:
        told = [each for each in lessons.instructions if each.arm == "variant"]
        assert (prompt == control) is not bool(told)
        assert prompt.startswith(control)
        assert (HEAD in prompt) is bool(told)
        assert not any(text in prompt for text in HOSTILE)


@pytest.mark.long
async def test_noise_does_begin_comparisons() -> None:
    """Else it would prove nothing: advice that is against itself looks like advice."""
    found = [await noise(seed) for seed in range(3)]

    assert any(each.variants for each in found)

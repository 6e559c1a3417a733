"""What a row says of a claim that was made under differential privacy."""

from fpbench import Guarantee, Measures


def private_notes(guarantee: Guarantee, noise: str) -> Measures:
    """What the claim guarantees, and where its noise came from."""
    return {
        "claim_epsilon": guarantee.epsilon,
        "claim_delta": guarantee.delta,
        "claim_neighbours": guarantee.neighbours,
        "claim_noise": noise,
    }

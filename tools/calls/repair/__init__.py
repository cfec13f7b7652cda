"""The repair ladder: what a broken call meant, where that is certain, and a refusal where not."""

"""Texts: their words, how alike they are, and what must not stand in them."""

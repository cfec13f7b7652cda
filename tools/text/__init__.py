"""Texts: splitting and ranking words, finding items in any store, and keeping keys out (SE-08).

``_search`` is the one place that says what the words of a text are and how alike two texts are;
``_secrets`` the one that masks keys.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.tools.text._search import (
        BY_CHANCE,
        RANKED_ITEMS,
        SAME_KIND,
        WORDS_ONLY,
        SearchableStore,
        SearchResult,
        Way,
        ask_for_the_same,
        fuse_rankings,
        is_related,
        likeness,
        likeness_to_any,
        needed_likeness,
        query_terms,
        rank_texts,
        rarity,
        search_store,
        split_words,
        texts_in,
    )
    from daruma.tools.text._secrets import (
        mask_error,
        mask_keys,
        note_env_file,
        note_secrets,
        read_live_values,
        secrets_in,
        without_keys,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_search": (
                "BY_CHANCE RANKED_ITEMS SAME_KIND SearchResult SearchableStore WORDS_ONLY Way "
                "ask_for_the_same fuse_rankings is_related likeness likeness_to_any "
                "needed_likeness query_terms rank_texts rarity search_store split_words texts_in"
            ),
            "_secrets": (
                "mask_error mask_keys note_env_file note_secrets read_live_values secrets_in "
                "without_keys"
            ),
        },
    )

__all__ = [
    "BY_CHANCE",
    "RANKED_ITEMS",
    "SAME_KIND",
    "WORDS_ONLY",
    "SearchResult",
    "SearchableStore",
    "Way",
    "ask_for_the_same",
    "fuse_rankings",
    "is_related",
    "likeness",
    "likeness_to_any",
    "mask_error",
    "mask_keys",
    "needed_likeness",
    "note_env_file",
    "note_secrets",
    "query_terms",
    "rank_texts",
    "rarity",
    "read_live_values",
    "search_store",
    "secrets_in",
    "split_words",
    "texts_in",
    "without_keys",
]

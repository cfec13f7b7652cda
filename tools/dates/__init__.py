"""Reading dates and times as people write them."""

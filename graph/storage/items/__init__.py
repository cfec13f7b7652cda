"""What the store keeps: values by namespace and key, found by name, filter, words, meaning."""

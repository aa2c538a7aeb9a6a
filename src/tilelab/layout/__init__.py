"""The layout algebra and its text forms."""

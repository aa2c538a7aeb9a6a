"""The tilelab command."""

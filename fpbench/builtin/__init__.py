"""The components that come with fpbench, one per file."""

"""The components that come with fpbench, one idea a file."""

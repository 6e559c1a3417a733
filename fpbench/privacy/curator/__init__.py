"""Curators, who hold people's groups and answer queries with noise, here or on another machine."""

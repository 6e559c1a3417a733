"""The work of a step. The only room in which kinds meet."""

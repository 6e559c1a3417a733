"""What a step does. The only place in which kinds meet."""

"""The living leaderboard: a static site of many runs, in which readers need not trust anybody."""

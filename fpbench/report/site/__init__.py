"""The living leaderboard: a static site of many runs, with nothing that a reader has to trust."""

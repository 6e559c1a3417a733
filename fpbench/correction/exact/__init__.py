"""The cheapest correction, proven: two groups, many groups, integer programs."""

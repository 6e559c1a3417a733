"""The results of a run to look at: one self-contained HTML page, and figures for papers."""

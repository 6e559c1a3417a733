"""The results of a run to look at: one self-contained HTML file, and figures for papers."""

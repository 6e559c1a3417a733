"""What a run says, to look at: one self-contained HTML file, and figures for papers."""

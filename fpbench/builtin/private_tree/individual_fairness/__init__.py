"""Whether similar people are treated alike."""

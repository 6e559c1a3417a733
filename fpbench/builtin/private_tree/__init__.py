"""Silva and Machado, 2021: private and fair decision trees; whether similar people are alike."""

"""What facts prove, and beliefs given them: counts of groups in sets of people that overlap."""

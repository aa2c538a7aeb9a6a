"""What chips are: limits, the rule of banks, the rule of sectors."""

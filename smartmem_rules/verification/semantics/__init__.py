"""What both sides of a rule mean: terms, domains of numbers, evaluation."""

"""What a plan says of itself: where each node ended, by which rules, and why two nodes are apart."""

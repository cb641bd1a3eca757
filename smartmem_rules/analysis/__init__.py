"""What follows from rules and definitions before any model is seen: classes, types of both sides, order, vacuity."""

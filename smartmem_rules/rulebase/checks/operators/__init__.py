"""What is wrong with definitions of operators and functions."""

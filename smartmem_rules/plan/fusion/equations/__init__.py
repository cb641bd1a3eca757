"""The flat program of equations that fusion groups: which become tables, constants, or one with another."""

"""`smartmem doctor`: which kernel a device computes wrongly, and a program in C that shows it without this package."""

"""`python -m smartmem_rules.cli`."""

from smartmem_rules.cli import main

main()

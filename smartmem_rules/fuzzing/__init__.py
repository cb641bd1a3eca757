"""Generated models against a reference: what finds the next wrong answer before a user does."""

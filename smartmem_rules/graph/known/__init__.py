"""What is known of a model when it is imported: its constants, what follows from them, shapes and sizes."""

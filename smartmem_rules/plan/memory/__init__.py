"""Where intermediates lie in device memory."""

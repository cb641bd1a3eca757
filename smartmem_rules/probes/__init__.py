"""Questions to kernels whose answers are known, made with a plan: what every correct schedule must answer."""

"""From equations to kernels: which equations are computed together."""

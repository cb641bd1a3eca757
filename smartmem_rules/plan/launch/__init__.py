"""Which kernels one enqueue runs: chains, horizontal fusion, megakernels, wavefronts."""

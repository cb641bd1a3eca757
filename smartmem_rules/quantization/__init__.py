"""Models with weights of few bits, made of models with floats (`smartmem quantize`)."""

#!/usr/bin/env bash
# Made of docs/tutorials/pytorch_to_c.md, which says more; run it in an empty folder.
set -euo pipefail

# From PyTorch to a C application

# A PyTorch module becomes a plan, the plan becomes a program in C, and at the end an application of your own runs the
# module without Python.

# You need a checkout in which `make demo` has run once, PyTorch in its environment, a C compiler and CMake:

# Work in an empty folder. `examples/tutorials/pytorch_to_c.sh` does all of this page at once.

# The module

# Self-attention with a residual, in evaluation mode; save it as `attention.py`:
cat > attention.py <<'END'
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, width = tokens.shape
        qkv = self.qkv(self.norm(tokens)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return tokens + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


torch.manual_seed(0)
model = Attention().eval()
tokens = torch.randn(1, 50, 64)
END

# A plan, in Python

# `optimize` takes what `torch.export` gives. Save this as `optimize.py`:
cat > optimize.py <<'END'
import torch

import smartmem_rules as sm
from attention import model, tokens

plan = sm.optimize(torch.export.export(model, (tokens,)))
(found,) = plan.run({"tokens": tokens.numpy()}).values()
with torch.no_grad():
    expected = model(tokens).numpy()
print(f"{len(plan.kernels)} launch; equal to PyTorch: {abs(found - expected).max() < 1e-5}")
END
echo; echo '$ python optimize.py'
python optimize.py

# The module has become one launch: head split, transposes and merge are indices at which it reads.
# `torch.compile(model, backend="smartmem")` takes the same way and keeps the module's interface
# ([PyTorch models](../torch.md)).

# An ONNX file

# For the commands, and for computers without PyTorch, export the module as ONNX, with an input to try it on:
cat > to_onnx.py <<'END'
import numpy as np
import torch

from attention import model, tokens

torch.onnx.export(model, (tokens,), "attention.onnx", input_names=["tokens"], output_names=["mixed"], dynamo=True)
np.save("tokens.npy", tokens.numpy())
with torch.no_grad():
    np.save("expected.npy", model(tokens).numpy())
END
echo; echo '$ python to_onnx.py > to_onnx.log 2>&1'
python to_onnx.py > to_onnx.log 2>&1
echo; echo '$ smartmem optimize attention.onnx -o attention.plan'
smartmem optimize attention.onnx -o attention.plan

# `smartmem show attention.plan` lists the launches; `smartmem explain attention.onnx NODE` says what became of a node.

# A program in C

# `export` writes a folder with everything that the model needs: the plan, the library's sources, and a `main.c` that
# reads inputs from files.
echo; echo '$ smartmem export attention.onnx -o program'
smartmem export attention.onnx -o program
echo; echo '$ cmake -S program -B program/build > cmake.log'
cmake -S program -B program/build > cmake.log
echo; echo '$ cmake --build program/build > build.log'
cmake --build program/build > build.log

# The program looks for an OpenCL driver where phones and computers keep theirs. If this computer has none, name the
# library that came with Python's packages:
home=$(python -c "import pyopencl; print(pyopencl.__path__[0])")
export SMARTMEM_OPENCL=$(ls "$home"/.libs/libOpenCL*) PYOPENCL_HOME=$home LD_LIBRARY_PATH=$home/.libs

# Run it, and compare its output with PyTorch's:
echo; echo '$ (cd program/build && ./run -o ../.. tokens=../../tokens.npy)'
(cd program/build && ./run -o ../.. tokens=../../tokens.npy)
echo; echo '$ python -c "import numpy as np; print(np.allclose(np.load('\''0.npy'\''), np.load('\''expected.npy'\''), atol=1e-5))"'
python -c "import numpy as np; print(np.allclose(np.load('0.npy'), np.load('expected.npy'), atol=1e-5))"

# Your application

# An application opens the plan, opens a session, and runs it as often as it likes. Save this as `app.c`:
cat > app.c <<'END'
#include <smartmem.h>
#include <stdio.h>

enum { LENGTH = 50, WIDTH = 64 };

static int failed(smartmem_status status) {
    fprintf(stderr, "%s: %s\n", smartmem_status_text(status), smartmem_last_error());
    return 1;
}

int main(int argc, char **argv) {
    static float tokens[LENGTH * WIDTH];
    smartmem_plan plan;
    smartmem_session session;
    smartmem_output mixed;
    smartmem_status status;
    if (argc != 2) {
        fprintf(stderr, "usage: app PLAN\n");
        return 2;
    }
    for (int i = 0; i < LENGTH * WIDTH; ++i)
        tokens[i] = (float)(i % 7) - 3.0f;
    if ((status = smartmem_plan_open(argv[1], NULL, &plan)) != SMARTMEM_OK ||
        (status = smartmem_session_open(plan, NULL, &session)) != SMARTMEM_OK)
        return failed(status);
    for (int run = 0; run < 3; ++run)
        if ((status = smartmem_set_input(session, "tokens", tokens, sizeof tokens, NULL, 0)) != SMARTMEM_OK ||
            (status = smartmem_run(session)) != SMARTMEM_OK ||
            (status = smartmem_get_output(session, "mixed", &mixed)) != SMARTMEM_OK)
            return failed(status);
    printf("%llu bytes, shape %lld x %lld x %lld\n", (unsigned long long)mixed.bytes, (long long)mixed.shape[0],
           (long long)mixed.shape[1], (long long)mixed.shape[2]);
    FILE *file = fopen("mixed.raw", "wb");
    if (file == NULL || fwrite(mixed.data, 1, mixed.bytes, file) != mixed.bytes || fclose(file) != 0)
        return 1;
    smartmem_session_close(session);
    smartmem_plan_close(plan);
    return 0;
}
END

# Its `CMakeLists.txt` takes the library from the exported folder; an installed one is found by `find_package(smartmem)`:
cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory(program/libsmartmem EXCLUDE_FROM_ALL)
add_executable(app app.c)
target_link_libraries(app smartmem::smartmem)
END

# Build it and run it; PyTorch gives the same for the same input:
cat > compare.py <<'END'
import numpy as np
import torch

from attention import model

tokens = torch.tensor([i % 7 - 3 for i in range(50 * 64)], dtype=torch.float32).reshape(1, 50, 64)
with torch.no_grad():
    expected = model(tokens).numpy()
found = np.fromfile("mixed.raw", np.float32).reshape(expected.shape)
print(f"equal to PyTorch: {abs(found - expected).max() < 1e-5}")
END
echo; echo '$ cmake -S . -B build > cmake.log'
cmake -S . -B build > cmake.log
echo; echo '$ cmake --build build > build.log'
cmake --build build > build.log
echo; echo '$ ./build/app attention.plan'
./build/app attention.plan
echo; echo '$ python compare.py'
python compare.py

# The application needs the C library, an OpenCL driver, and the plan; no Python.

# Further

# [libsmartmem](../c_runtime.md): threads, asynchronous runs, memory of the application, plans for several devices.

# [Plans for ranges of extents](../dynamic.md): one plan for any length of the sequence.

# [Plans that test themselves](../self_test.md): find kernels that a phone's driver computes wrongly.

"""AutoFormerV2 (S3: Swin with searched depths and windows) and FLatten-Swin (focused linear attention)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.layers import Classifier, Depthwise, Perceptron, attention, heads, joined, relative_index, unwindows, windows


@dataclass(frozen=True)
class Shape:
    """The searched numbers of a network; `linear` stages use focused linear attention over the whole map."""

    depths: tuple[int, ...]
    heads: tuple[int, ...] = (3, 6, 12, 24)
    windows: tuple[int, ...] = (7, 7, 7, 7)
    dim: int = 96
    linear: int = 0
    size: int = 224


AUTOFORMER_S3_TINY = Shape((2, 2, 6, 2), windows=(7, 7, 14, 7))
AUTOFORMER_S3_SMALL = Shape((2, 2, 18, 2), windows=(14, 14, 14, 7))
FLATTEN_SWIN_TINY = Shape((2, 2, 6, 2), linear=2)


class WindowAttention(nn.Module):
    """Attention inside windows with a bias for every relative position."""

    def __init__(self, dim: int, count: int, window: int) -> None:
        super().__init__()
        self.count, self.scale = count, (dim // count) ** -0.5
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(0.02 * torch.randn((2 * window - 1) ** 2, count))
        self.register_buffer("index", relative_index(window, window))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (heads(part, self.count) for part in self.qkv(x).chunk(3, dim=-1))
        bias = self.table[self.index.reshape(-1)].reshape(x.shape[1], x.shape[1], -1).permute(2, 0, 1).unsqueeze(0)
        if mask is None:
            return self.out(joined(attention(q, k, v, self.scale, bias)))
        scores = (q * self.scale) @ k.transpose(-2, -1) + bias
        count = mask.shape[0]
        scores = scores.reshape(-1, count, *scores.shape[1:]) + mask[None, :, None]
        return self.out(joined(scores.reshape(-1, *scores.shape[2:]).softmax(dim=-1) @ v))


class FocusedLinearAttention(nn.Module):
    """Linear attention whose feature map sharpens directions; a depthwise convolution of v restores its rank."""

    def __init__(self, dim: int, count: int, window: int, power: int = 3, kernel: int = 5) -> None:
        super().__init__()
        self.count, self.window, self.power = count, window, power
        self.q, self.kv, self.out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.local = Depthwise(dim // count, kernel)
        self.scale = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(0.02 * torch.randn(1, window * window, dim))

    def focus(self, x: Tensor) -> Tensor:
        x = (functional.relu(x) + 1e-6) / functional.softplus(self.scale)
        sharp = x**self.power
        return sharp / sharp.norm(dim=-1, keepdim=True) * x.norm(dim=-1, keepdim=True)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        del mask
        k, v = self.kv(x).chunk(2, dim=-1)
        q, k, v = (heads(t, self.count) for t in (self.focus(self.q(x)), self.focus(k + self.positions), v))
        weight = 1 / (q @ k.mean(dim=-2, keepdim=True).transpose(-2, -1) + 1e-6)
        n = x.shape[1]
        result = joined(q @ ((k * n**-0.5).transpose(-2, -1) @ (v * n**-0.5)) * weight)
        b, h, _, c = v.shape
        places = v.transpose(-2, -1).reshape(b * h, c, self.window, self.window)
        local = self.local(places).reshape(b, h * c, n).transpose(1, 2)
        return self.out(result + local)


class Block(nn.Module):
    """Attention in (shifted) windows, then a perceptron."""

    def __init__(self, dim: int, count: int, size: int, window: int, shifted: bool, linear: bool) -> None:
        super().__init__()
        self.window = size if linear else min(window, size)
        self.shift = self.window // 2 if shifted and self.window < size else 0
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        kind = FocusedLinearAttention if linear else WindowAttention
        self.attention = kind(dim, count, self.window)
        self.perceptron = Perceptron(dim, 4 * dim)
        self.register_buffer("mask", shift_mask(size, self.window, self.shift) if self.shift else None)

    def forward(self, x: Tensor) -> Tensor:
        _, h, w, _ = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.attention(windows(y, self.window, self.window), self.mask)
        y = unwindows(y, self.window, self.window, h, w)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.perceptron(self.norm2(x))


def shift_mask(size: int, window: int, shift: int) -> Tensor:
    """-100 between places that only the cyclic shift made neighbours."""
    region = torch.zeros(1, size, size, 1)
    borders = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for number, (rows, columns) in enumerate((r, c) for r in borders for c in borders):
        region[:, rows, columns] = number
    parts = windows(region, window, window).squeeze(-1)
    return torch.where(parts[:, None] == parts[:, :, None], 0.0, -100.0)


class Merge(nn.Module):
    """Four neighbours become one place of twice the channels."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduce(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    """Images to classes."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed, self.norm = nn.Conv2d(3, shape.dim, 4, 4), nn.LayerNorm(shape.dim)
        layers: list[nn.Module] = []
        size, dim = shape.size // 4, shape.dim
        for stage, (depth, count, window) in enumerate(zip(shape.depths, shape.heads, shape.windows, strict=True)):
            if stage:
                layers.append(Merge(dim))
                size, dim = size // 2, dim * 2
            linear = stage < shape.linear
            layers += [Block(dim, count, size, window, number % 2 == 1, linear) for number in range(depth)]
        self.layers, self.classifier = nn.Sequential(*layers), Classifier(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(self.norm(self.embed(x).permute(0, 2, 3, 1))))

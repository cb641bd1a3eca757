"""CSWin-T: attention in horizontal and vertical stripes side by side, with locally enhanced positions (LePE)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.layers import Classifier, Depthwise, Perceptron, attention, heads, joined, unwindows, windows


class Stripes(nn.Module):
    """Attention inside windows of height x width; a depthwise convolution of v carries the positions."""

    def __init__(self, dim: int, count: int, height: int, width: int) -> None:
        super().__init__()
        self.count, self.height, self.width, self.scale = count, height, width, (dim // count) ** -0.5
        self.local = Depthwise(dim)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        _, h, w, c = q.shape
        q, k, v = (windows(t, self.height, self.width) for t in (q, k, v))
        places = v.transpose(1, 2).reshape(-1, c, self.height, self.width)
        local = self.local(places).reshape(-1, c, self.height * self.width).transpose(1, 2)
        result = joined(attention(*(heads(t, self.count) for t in (q, k, v)), self.scale) + heads(local, self.count))
        return unwindows(result, self.height, self.width, h, w)


class Block(nn.Module):
    """Half of the channels in horizontal stripes, half in vertical ones; the last stage takes the whole map."""

    def __init__(self, dim: int, count: int, size: int, stripe: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        if stripe >= size:
            self.stripes = nn.ModuleList([Stripes(dim, count, size, size)])
        else:
            half = dim // 2, count // 2
            self.stripes = nn.ModuleList([Stripes(*half, size, stripe), Stripes(*half, stripe, size)])
        self.perceptron = Perceptron(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        parts = [t.chunk(len(self.stripes), dim=-1) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1)]
        mixed = [stripe(*qkv) for stripe, qkv in zip(self.stripes, zip(*parts, strict=True), strict=True)]
        x = x + self.out(torch.cat(mixed, dim=-1))
        return x + self.perceptron(self.norm2(x))


class Embed(nn.Module):
    """A convolution and a normalization; channels come out last."""

    def __init__(self, channels: int, dim: int, kernel: int, stride: int, padding: int, last: bool) -> None:
        super().__init__()
        self.reduce, self.norm, self.last = nn.Conv2d(channels, dim, kernel, stride, padding), nn.LayerNorm(dim), last

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 3, 1, 2) if self.last else x
        return self.norm(self.reduce(x).permute(0, 2, 3, 1))


class CSWin(nn.Module):
    """Images to classes."""

    def __init__(
        self,
        dim: int = 64,
        depths: tuple[int, ...] = (1, 2, 21, 1),
        stripes: tuple[int, ...] = (1, 2, 7, 7),
        counts: tuple[int, ...] = (2, 4, 8, 16),
        size: int = 56,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [Embed(3, dim, 7, 4, 2, False)]
        for stage, (depth, stripe, count) in enumerate(zip(depths, stripes, counts, strict=True)):
            if stage:
                layers.append(Embed(dim, 2 * dim, 3, 2, 1, True))
                dim, size = 2 * dim, size // 2
            layers += [Block(dim, count, size, stripe) for _ in range(depth)]
        self.layers, self.classifier = nn.Sequential(*layers), Classifier(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x))

"""CrossFormer-S: cross-scale embeddings, attention over neighbours and over distant places, learned position biases."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.layers import Classifier, Perceptron, attention, heads, joined, relative_index

GROUP = 7


class CrossScale(nn.Module):
    """Convolutions of several sizes with one stride, side by side; the larger ones give fewer channels."""

    def __init__(self, channels: int, dim: int, kernels: tuple[int, ...], stride: int) -> None:
        super().__init__()
        shares = [dim // 2 ** (number + 1) for number in range(len(kernels))]
        shares[-1] = dim - sum(shares[:-1])
        self.parts = nn.ModuleList(
            nn.Conv2d(channels, share, kernel, stride, (kernel - stride) // 2)
            for share, kernel in zip(shares, kernels, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], dim=1)


class PositionBias(nn.Module):
    """A small perceptron from a relative position to a bias for each head."""

    def __init__(self, dim: int, count: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, dim)
        widths = (dim, dim, count)
        self.rest = nn.Sequential(*(nn.Sequential(nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, w)) for w in widths))

    def forward(self, positions: Tensor) -> Tensor:
        return self.rest(self.first(positions))


class Attention(nn.Module):
    """Attention inside groups with dynamic position bias."""

    def __init__(self, dim: int, count: int) -> None:
        super().__init__()
        self.count, self.scale = count, (dim // count) ** -0.5
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = PositionBias(dim // 16, count)
        distance = torch.arange(1 - GROUP, GROUP).float()
        grid = torch.stack(torch.meshgrid(distance, distance, indexing="ij"))
        self.register_buffer("positions", grid.flatten(1).transpose(0, 1).contiguous())
        self.register_buffer("index", relative_index(GROUP, GROUP))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(part, self.count) for part in self.qkv(x).chunk(3, dim=-1))
        table = self.bias(self.positions)
        bias = table[self.index.reshape(-1)].reshape(GROUP**2, GROUP**2, -1).permute(2, 0, 1).unsqueeze(0)
        return self.out(joined(attention(q, k, v, self.scale, bias)))


class Block(nn.Module):
    """Groups of neighbours, or (`interval` > 0) of places that lie an interval apart."""

    def __init__(self, dim: int, count: int, interval: int) -> None:
        super().__init__()
        self.interval = interval
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention, self.perceptron = Attention(dim, count), Perceptron(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        y = self.norm1(x)
        if self.interval:
            step = self.interval
            y = y.reshape(b, h // step, step, w // step, step, c).permute(0, 2, 4, 1, 3, 5)
        else:
            y = y.reshape(b, h // GROUP, GROUP, w // GROUP, GROUP, c).permute(0, 1, 3, 2, 4, 5)
        outer = y.shape[1:3]
        y = self.attention(y.reshape(-1, GROUP**2, c)).reshape(b, *outer, GROUP, GROUP, c)
        y = y.permute(0, 3, 1, 4, 2, 5) if self.interval else y.permute(0, 1, 3, 2, 4, 5)
        x = x + y.reshape(b, h, w, c)
        return x + self.perceptron(self.norm2(x))


class Merge(nn.Module):
    """Halves the map by a cross-scale embedding."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(dim), CrossScale(dim, 2 * dim, (2, 4), 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduce(self.norm(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class CrossFormer(nn.Module):
    """Images to classes."""

    def __init__(
        self,
        dim: int = 96,
        depths: tuple[int, ...] = (2, 2, 6, 2),
        counts: tuple[int, ...] = (3, 6, 12, 24),
        intervals: tuple[int, ...] = (8, 4, 2, 1),
    ) -> None:
        super().__init__()
        self.embed, self.norm = CrossScale(3, dim, (4, 8, 16, 32), 4), nn.LayerNorm(dim)
        layers: list[nn.Module] = []
        for stage, (depth, count, interval) in enumerate(zip(depths, counts, intervals, strict=True)):
            if stage:
                layers.append(Merge(dim))
                dim *= 2
            layers += [Block(dim, count, interval if number % 2 and interval > 1 else 0) for number in range(depth)]
        self.layers, self.classifier = nn.Sequential(*layers), Classifier(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(self.norm(self.embed(x).permute(0, 2, 3, 1))))

"""SMT-T: scale-aware modulation by multi-head mixed convolutions, then attention in the later blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.layers import Classifier, Depthwise, attention, heads, joined


class Modulation(nn.Module):
    """Convolutions of growing size over channel groups, mixed across groups, modulate the values."""

    def __init__(self, dim: int, groups: int = 4, expand: int = 2) -> None:
        super().__init__()
        self.groups, self.each = groups, dim // groups
        self.v, self.s, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.local = nn.ModuleList(Depthwise(self.each, 3 + 2 * number) for number in range(groups))
        self.widen = nn.Conv2d(dim, dim * expand, 1, groups=self.each)
        self.norm, self.activate = nn.BatchNorm2d(dim * expand), nn.GELU()
        self.narrow = nn.Conv2d(dim * expand, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        parts = self.s(x).reshape(b, h, w, self.groups, self.each).permute(3, 0, 4, 1, 2)
        mixed = [conv(parts[number]) for number, conv in enumerate(self.local)]
        # one channel of every group side by side: each small convolution sees all sizes
        s = torch.stack(mixed, dim=2).reshape(b, c, h, w)
        s = self.narrow(self.activate(self.norm(self.widen(s))))
        return self.out(s.permute(0, 2, 3, 1) * self.v(x))


class Attention(nn.Module):
    """Attention over all places, with a depthwise convolution of v beside it."""

    def __init__(self, dim: int, count: int) -> None:
        super().__init__()
        self.count, self.scale = count, (dim // count) ** -0.5
        self.q, self.kv, self.out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.local = Depthwise(dim)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        x = x.reshape(b, h * w, c)
        k, v = self.kv(x).chunk(2, dim=-1)
        result = joined(attention(*(heads(t, self.count) for t in (self.q(x), k, v)), self.scale))
        local = self.local(v.transpose(1, 2).reshape(b, c, h, w)).reshape(b, c, h * w).transpose(1, 2)
        return self.out(result + local).reshape(b, h, w, c)


class ConvolvedPerceptron(nn.Module):
    """A perceptron with a depthwise convolution between its layers."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.expand, self.local, self.shrink = nn.Linear(dim, hidden), Depthwise(hidden), nn.Linear(hidden, dim)
        self.activate = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.expand(x)
        return self.shrink(self.activate(x + self.local(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)))


class Block(nn.Module):
    """Modulation or attention, then the perceptron."""

    def __init__(self, dim: int, mixer: nn.Module, ratio: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mixer, self.perceptron = mixer, ConvolvedPerceptron(dim, ratio * dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x + self.perceptron(self.norm2(x))


class Reduce(nn.Module):
    """Halves the map; the first one quarters the image."""

    def __init__(self, channels: int, dim: int) -> None:
        super().__init__()
        self.first = channels == 3
        if self.first:
            stem = [nn.Conv2d(3, dim, 3, 2, 1), nn.BatchNorm2d(dim), nn.GELU(), nn.Conv2d(dim, dim, 2, 2)]
            self.reduce: nn.Module = nn.Sequential(*stem)
        else:
            self.reduce = nn.Conv2d(channels, dim, 3, 2, 1)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.first else x.permute(0, 3, 1, 2)
        return self.norm(self.reduce(x).permute(0, 2, 3, 1))


class SMT(nn.Module):
    """Images to classes."""

    def __init__(
        self,
        dims: tuple[int, ...] = (64, 128, 256, 512),
        depths: tuple[int, ...] = (2, 2, 8, 1),
        counts: tuple[int, ...] = (0, 0, 8, 16),
        ratios: tuple[int, ...] = (8, 6, 4, 2),
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for stage, (dim, depth, count, ratio) in enumerate(zip(dims, depths, counts, ratios, strict=True)):
            layers.append(Reduce(before, dim))
            for number in range(depth):
                attends = stage == 3 or (stage == 2 and number % 2 == 1)
                layers.append(Block(dim, Attention(dim, count) if attends else Modulation(dim), ratio))
            layers.append(nn.LayerNorm(dim))
            before = dim
        self.layers, self.classifier = nn.Sequential(*layers), Classifier(dims[-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x))

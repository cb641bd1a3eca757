"""BiFormer-T: bi-level routing attention, where every region attends to the regions that fit it best."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.layers import Classifier, Depthwise, Perceptron, attention, heads, joined

REGIONS = 7
"""Regions along each side of a map."""


class RoutingAttention(nn.Module):
    """Regions choose `routes` regions by their mean queries and keys; attention runs over the places of these."""

    def __init__(self, dim: int, routes: int) -> None:
        super().__init__()
        self.routes, self.count, self.scale = routes, dim // 32, dim**-0.5
        self.qkv, self.out, self.local = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), Depthwise(dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        height, width, regions = h // REGIONS, w // REGIONS, REGIONS**2
        parts = self.qkv(x).reshape(b, REGIONS, height, REGIONS, width, 3 * c).permute(0, 1, 3, 2, 4, 5)
        q, k, v = parts.reshape(b, regions, height * width, 3 * c).chunk(3, dim=-1)
        fitness = (q.mean(2) * self.scale) @ k.mean(2).transpose(-2, -1)
        chosen = fitness.topk(self.routes, dim=-1).indices
        places = height * width
        index = chosen[:, :, :, None, None].expand(-1, -1, -1, places, 2 * c)
        pairs = torch.cat([k, v], -1)[:, None].expand(-1, regions, -1, -1, -1)
        gathered = pairs.gather(2, index).reshape(b * regions, self.routes * places, 2 * c)
        keys, values = gathered.chunk(2, dim=-1)
        q = q.reshape(b * regions, places, c)
        result = joined(attention(*(heads(t, self.count) for t in (q, keys, values)), self.scale))
        values = self.map(v, height, width)
        local = self.local(values.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.out(self.map(result.reshape(b, regions, places, c), height, width) + local)

    @staticmethod
    def map(x: Tensor, height: int, width: int) -> Tensor:
        """Regions as a map."""
        b, _, _, c = x.shape
        x = x.reshape(b, REGIONS, REGIONS, height, width, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(b, REGIONS * height, REGIONS * width, c)


class FullAttention(nn.Module):
    """Attention over all places, with the same local part."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.count, self.scale = dim // 32, 32**-0.5
        self.qkv, self.out, self.local = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), Depthwise(dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        q, k, v = self.qkv(x).reshape(b, h * w, 3 * c).chunk(3, dim=-1)
        local = self.local(v.reshape(b, h, w, c).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        result = joined(attention(*(heads(t, self.count) for t in (q, k, v)), self.scale))
        return self.out(result.reshape(b, h, w, c) + local)


class Block(nn.Module):
    """A convolution for positions, attention, a perceptron."""

    def __init__(self, dim: int, routes: int) -> None:
        super().__init__()
        self.positions = Depthwise(dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = RoutingAttention(dim, routes) if routes else FullAttention(dim)
        self.perceptron = Perceptron(dim, 3 * dim)

    def forward(self, x: Tensor) -> Tensor:
        x = (x + self.positions(x)).permute(0, 2, 3, 1)
        x = x + self.attention(self.norm1(x))
        return (x + self.perceptron(self.norm2(x))).permute(0, 3, 1, 2)


class BiFormer(nn.Module):
    """Images to classes."""

    def __init__(
        self,
        dims: tuple[int, ...] = (64, 128, 256, 512),
        depths: tuple[int, ...] = (2, 2, 8, 2),
        routes: tuple[int, ...] = (1, 4, 16, 0),
    ) -> None:
        super().__init__()
        first = dims[0]
        layers: list[nn.Module] = [
            nn.Conv2d(3, first // 2, 3, 2, 1), nn.BatchNorm2d(first // 2), nn.GELU(),
            nn.Conv2d(first // 2, first, 3, 2, 1), nn.BatchNorm2d(first),
        ]  # fmt: skip
        for stage, (dim, depth, count) in enumerate(zip(dims, depths, routes, strict=True)):
            if stage:
                layers += [nn.Conv2d(dims[stage - 1], dim, 3, 2, 1), nn.BatchNorm2d(dim)]
            layers += [Block(dim, count) for _ in range(depth)]
        self.layers, self.norm = nn.Sequential(*layers), nn.BatchNorm2d(dims[-1])
        self.classifier = Classifier(dims[-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.norm(self.layers(x)).permute(0, 2, 3, 1))

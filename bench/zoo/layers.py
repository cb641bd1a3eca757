"""What several of the networks share: window partitions, perceptrons, convolutions with normalization."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Perceptron(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Linear(dim, hidden)
        self.activate = nn.GELU()
        self.shrink = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.shrink(self.activate(self.expand(x)))


class Depthwise(nn.Conv2d):
    """A depthwise convolution that keeps the size."""

    def __init__(self, channels: int, kernel: int = 3) -> None:
        super().__init__(channels, channels, kernel, padding=kernel // 2, groups=channels)


class ChannelsLast(nn.Module):
    """Applies a layer that expects the channels behind the places to a tensor that has them before."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def windows(x: Tensor, height: int, width: int) -> Tensor:
    """[batch, H, W, channels] as [batch * windows, height * width, channels]."""
    b, h, w, c = x.shape
    x = x.reshape(b, h // height, height, w // width, width, c).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, height * width, c)


def unwindows(x: Tensor, height: int, width: int, h: int, w: int) -> Tensor:
    """The inverse of `windows` for a map of h x w places."""
    x = x.reshape(-1, h // height, w // width, height, width, x.shape[-1]).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, h, w, x.shape[-1])


def heads(x: Tensor, count: int) -> Tensor:
    """[batch, places, channels] as [batch, heads, places, channels of a head]."""
    b, n, c = x.shape
    return x.reshape(b, n, count, c // count).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """The inverse of `heads`."""
    b, h, n, c = x.shape
    return x.transpose(1, 2).reshape(b, n, h * c)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None = None) -> Tensor:
    """softmax(scale * q k' + bias) v."""
    scores = (q * scale) @ k.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    return scores.softmax(dim=-1) @ v


def relative_index(height: int, width: int) -> Tensor:
    """For each pair of places of a window the row of a table of relative positions."""
    grid = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1)
    distance = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0)
    return (distance[..., 0] + height - 1) * (2 * width - 1) + distance[..., 1] + width - 1


class Classifier(nn.Module):
    """Mean over the places and a linear layer."""

    def __init__(self, dim: int, classes: int = 1000) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x).mean(dim=(1, 2)))

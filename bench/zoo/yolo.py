"""YOLOv8n: C2f blocks, SPPF, a feature pyramid, and heads whose box distances are means of distributions (DFL)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BINS = 16
"""Places of a box distance's distribution."""


class Conv(nn.Module):
    """Convolution, batch normalization, SiLU."""

    def __init__(self, channels: int, dim: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, dim, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(dim, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        return functional.silu(self.norm(self.conv(x)))


class Bottleneck(nn.Module):
    """Two convolutions, and what came in where `shortcut`."""

    def __init__(self, dim: int, shortcut: bool) -> None:
        super().__init__()
        self.first, self.second, self.shortcut = Conv(dim, dim, 3), Conv(dim, dim, 3), shortcut

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x))
        return x + y if self.shortcut else y


class C2f(nn.Module):
    """Splits the channels, runs bottlenecks on one half, and joins all that came out on the way."""

    def __init__(self, channels: int, dim: int, count: int, shortcut: bool) -> None:
        super().__init__()
        self.enter, self.leave = Conv(channels, dim), Conv((2 + count) * dim // 2, dim)
        self.blocks = nn.ModuleList(Bottleneck(dim // 2, shortcut) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class SPPF(nn.Module):
    """Maxima over windows of 5, 9 and 13, by pooling three times."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.enter, self.leave = Conv(dim, dim // 2), Conv(2 * dim, dim)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class Detect(nn.Module):
    """Boxes (centre and size in pixels) and class probabilities of all places of three maps."""

    def __init__(self, channels: tuple[int, ...], size: int, classes: int = 80) -> None:
        super().__init__()
        box, score = max(16, channels[0] // 4, 4 * BINS), max(channels[0], min(classes, 100))
        self.boxes = nn.ModuleList(
            nn.Sequential(Conv(c, box, 3), Conv(box, box, 3), nn.Conv2d(box, 4 * BINS, 1)) for c in channels
        )
        self.scores = nn.ModuleList(
            nn.Sequential(Conv(c, score, 3), Conv(score, score, 3), nn.Conv2d(score, classes, 1)) for c in channels
        )
        self.register_buffer("bins", torch.arange(BINS).float().reshape(1, BINS, 1, 1))
        anchors, strides = [], []
        for stride in (8, 16, 32):
            places = torch.arange(size // stride) + 0.5
            y, x = torch.meshgrid(places, places, indexing="ij")
            anchors.append(torch.stack((x, y), -1).reshape(-1, 2))
            strides.append(torch.full((anchors[-1].shape[0], 1), float(stride)))
        self.register_buffer("anchors", torch.cat(anchors).transpose(0, 1).unsqueeze(0).contiguous())
        self.register_buffer("strides", torch.cat(strides).transpose(0, 1).contiguous())

    def forward(self, *maps: Tensor) -> Tensor:
        boxes = torch.cat([head(x).flatten(2) for head, x in zip(self.boxes, maps, strict=True)], dim=2)
        scores = torch.cat([head(x).flatten(2) for head, x in zip(self.scores, maps, strict=True)], dim=2)
        b, _, n = boxes.shape
        distribution = boxes.reshape(b, 4, BINS, n).transpose(1, 2).softmax(dim=1)
        distances = functional.conv2d(distribution, self.bins).reshape(b, 4, n)
        before, after = distances.chunk(2, dim=1)
        low, high = self.anchors - before, self.anchors + after
        return torch.cat((torch.cat(((low + high) / 2, high - low), 1) * self.strides, scores.sigmoid()), 1)


class YOLO(nn.Module):
    """Images to boxes and scores."""

    def __init__(self, size: int = 640) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), C2f(32, 32, 1, True))
        self.low = nn.Sequential(Conv(32, 64, 3, 2), C2f(64, 64, 2, True))
        self.middle = nn.Sequential(Conv(64, 128, 3, 2), C2f(128, 128, 2, True))
        self.high = nn.Sequential(Conv(128, 256, 3, 2), C2f(256, 256, 1, True), SPPF(256))
        self.up1, self.up2 = C2f(384, 128, 1, False), C2f(192, 64, 1, False)
        self.reduce1, self.down1 = Conv(64, 64, 3, 2), C2f(192, 128, 1, False)
        self.reduce2, self.down2 = Conv(128, 128, 3, 2), C2f(384, 256, 1, False)
        self.detect = Detect((64, 128, 256), size)

    def forward(self, x: Tensor) -> Tensor:
        low = self.low(self.stem(x))
        middle = self.middle(low)
        high = self.high(middle)
        middle = self.up1(torch.cat((doubled(high), middle), 1))
        low = self.up2(torch.cat((doubled(middle), low), 1))
        middle = self.down1(torch.cat((self.reduce1(low), middle), 1))
        high = self.down2(torch.cat((self.reduce2(middle), high), 1))
        return self.detect(low, middle, high)


def doubled(x: Tensor) -> Tensor:
    """Every place twice in both directions."""
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")

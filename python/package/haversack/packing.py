"""Saved tensors with fewer bits: codes and signs, made piece by piece, so that a second copy of a tensor never exists."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import torch

#: Values that share a scale and a minimum.
GROUP = 256
#: Values that are processed at a time.
PIECE = 1 << 16


def _pieces(values: int) -> List[Tuple[int, int]]:
    return [(first, min(first + PIECE, values)) for first in range(0, values, PIECE)]


def _whole_groups(piece: torch.Tensor, group: int) -> torch.Tensor:
    """The piece in rows of `group`; the last row is padded with its last value."""
    lacking = -piece.numel() % group
    if lacking:
        piece = torch.cat([piece, piece[-1:].expand(lacking)])
    return piece.view(-1, group)


def _lanes(bits: int) -> Tuple[int, torch.dtype, int]:
    """Codes per word, the type of the word, and how many of its bytes are kept."""
    return (8 // bits, torch.uint8, 1) if 8 % bits == 0 else (8, torch.int64, bits)


def _join(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Packs codes of `bits` bits into bytes; the number of codes is a multiple of eight."""
    lanes, word, kept = _lanes(bits)
    if lanes == 1:
        return codes.view(-1)
    rows = codes.view(-1, lanes).to(word)
    joined = rows[:, 0].clone()
    for lane in range(1, lanes):
        joined |= rows[:, lane] << (bits * lane)
    return joined.view(torch.uint8).view(joined.numel(), -1)[:, :kept].reshape(-1)


def _split(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """The codes that `_join` packed."""
    lanes, word, kept = _lanes(bits)
    if lanes == 1:
        return packed
    size = word.itemsize
    if size > kept:
        filled = packed.new_zeros(packed.numel() // kept, size)
        filled[:, :kept] = packed.view(-1, kept)
        packed = filled.view(-1)
    words = packed.view(word)
    return torch.stack([(words >> (bits * lane)) & ((1 << bits) - 1) for lane in range(lanes)], 1).view(-1)


class Codes:
    """Values with `bits` bits each, and the scale and minimum of every 256; 16 bits are half floats.

    Unit: bytes of torch tensors. Source: equation 1 of DAF (Liu et al., MobiSys 2025); `stochastic` rounding as in ActNN
    (Chen et al., ICML 2021, section 3.1).
    """

    def __init__(self, flat: torch.Tensor, bits: int, stochastic: bool = False) -> None:
        self.values, self.dtype, self.bits = flat.numel(), flat.dtype, bits
        if bits == 16:
            self.codes = flat.to(torch.float16)
            return
        groups = -(-self.values // GROUP)
        self.codes = torch.empty(groups * GROUP * bits // 8, dtype=torch.uint8, device=flat.device)
        self.scales = torch.empty(2, groups, dtype=flat.dtype, device=flat.device)
        most = (1 << bits) - 1
        chance = torch.Generator(flat.device).manual_seed(self.values) if stochastic else None
        for first, end in _pieces(self.values):
            rows = _whole_groups(flat[first:end], GROUP)
            least, largest = torch.aminmax(rows, dim=1)
            scale = (largest - least).div_(most)
            at = slice(first // GROUP, first // GROUP + len(rows))
            self.scales[0, at], self.scales[1, at] = scale, least
            scale[scale == 0] = 1
            rows = (rows - least[:, None]).div_(scale[:, None])
            if chance is None:
                rows.round_()
            else:
                rows.add_(torch.rand(rows.shape, generator=chance, device=rows.device, dtype=rows.dtype)).floor_()
            codes = rows.clamp_(0, most).to(torch.uint8)
            begin = first * bits // 8
            self.codes[begin : begin + codes.numel() * bits // 8] = _join(codes, bits)

    def whole(self) -> torch.Tensor:
        """The values, one after the other."""
        if self.bits == 16:
            return self.codes.to(self.dtype)
        flat = torch.empty(self.values, dtype=self.dtype, device=self.codes.device)
        for first, end in _pieces(self.values):
            groups = -(-(end - first) // GROUP)
            begin, size = first * self.bits // 8, groups * GROUP * self.bits // 8
            rows = _split(self.codes[begin : begin + size], self.bits).view(groups, GROUP).to(self.dtype)
            at = slice(first // GROUP, first // GROUP + groups)
            rows.mul_(self.scales[0, at, None]).add_(self.scales[1, at, None])
            flat[first:end] = rows.view(-1)[: end - first]
        return flat


class Marks:
    """A bit per value: whether it passes. Restored as `high` if it does and `low` if it does not."""

    def __init__(
        self, flat: torch.Tensor, passes: Callable[[torch.Tensor], torch.Tensor], low: float, high: float
    ) -> None:
        self.values, self.dtype, self.low, self.high = flat.numel(), flat.dtype, low, high
        self.bits = torch.empty(-(-self.values // 8), dtype=torch.uint8, device=flat.device)
        for first, end in _pieces(self.values):
            joined = _join(_whole_groups(passes(flat[first:end]).to(torch.uint8), 8), 1)
            self.bits[first // 8 : first // 8 + joined.numel()] = joined

    def whole(self) -> torch.Tensor:
        """The restored values, as many as there were."""
        flat = torch.empty(self.values, dtype=self.dtype, device=self.bits.device)
        for first, end in _pieces(self.values):
            marks = _split(self.bits[first // 8 : -(-end // 8)], 1)[: end - first].to(self.dtype)
            flat[first:end] = marks.mul_(self.high - self.low).add_(self.low)
        return flat


class Places:
    """The position of each maximum of a pooling within its window, a byte each."""

    def __init__(self, flat: torch.Tensor, shape: Any, width: int, stride: Any, padding: Any) -> None:
        self.shape, self.width, self.stride, self.padding = tuple(shape), width, stride, padding
        self.rows = torch.empty(flat.numel(), dtype=torch.uint8, device=flat.device)
        for first, end, corner_y, corner_x in self._corners():
            places = flat[first:end]
            down = torch.div(places, width, rounding_mode="floor") - corner_y
            self.rows[first:end] = (down * 16 + places % width - corner_x).to(torch.uint8)

    def _corners(self) -> Any:
        """Pieces, with the first row and column of the window of each."""
        height, width = self.shape[-2:]
        values = 1
        for size in self.shape:
            values *= size
        for first, end in _pieces(values):
            at = torch.arange(first, end, device=self.rows.device)
            row, column = torch.div(at, width, rounding_mode="floor") % height, at % width
            yield first, end, row * self.stride[0] - self.padding[0], column * self.stride[1] - self.padding[1]

    def whole(self) -> torch.Tensor:
        """The indices."""
        flat = torch.empty(self.rows.numel(), dtype=torch.int64, device=self.rows.device)
        for first, end, corner_y, corner_x in self._corners():
            packed = self.rows[first:end].to(torch.int64)
            flat[first:end] = (corner_y + (packed >> 4)) * self.width + corner_x + (packed & 15)
        return flat

"""Exceptions, with the messages of the command line."""

from __future__ import annotations

from typing import Any, Optional


class HaversackError(Exception):
    """The base of all exceptions of this package."""


class InputError(HaversackError, ValueError):
    """The input is wrong (exit code 2): the message names the place, the key and what was expected."""


class NoPlanError(HaversackError):
    """The input is valid, but no plan fits memory or time (exit code 3): the message gives the least budget that works."""

    #: The least memory budget that works; None if no memory budget does, or if memory was not short.
    least_memory_bytes: Optional[int]
    #: The same for the activation budget.
    least_activation_bytes: Optional[int]
    #: The result of a run that missed only its time budget.
    result: Optional[Any]

    def __init__(
        self,
        message: str,
        least_memory_bytes: Optional[int] = None,
        least_activation_bytes: Optional[int] = None,
        result: Optional[Any] = None,
    ) -> None:
        super().__init__(message)
        self.least_memory_bytes = least_memory_bytes
        self.least_activation_bytes = least_activation_bytes
        self.result = result


class RunError(HaversackError, RuntimeError):
    """The run failed (exit code 1)."""

"""Exceptions. All are a :class:`WeirError`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Diagnostic:
    """One finding of the compiler."""

    severity: str
    """``error`` or ``warning``."""
    code: str
    """A stable code, such as ``type-error``."""
    message: str
    """What was expected and what was found."""
    file: str
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    help: Optional[str]
    """What to do about it, where known."""
    source: str
    """The line of the source."""
    text: str
    """The whole finding as ``weir check`` prints it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}[{self.code}]: {self.message}"


class WeirError(Exception):
    """An error of this package."""


class CompileError(WeirError):
    """The program is rejected."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: List[Diagnostic] = list(diagnostics)
        """All findings, warnings included."""
        super().__init__("\n" + "\n".join(d.text.rstrip() for d in self.diagnostics))

    @property
    def errors(self) -> List[Diagnostic]:
        """The findings that are errors."""
        return [d for d in self.diagnostics if d.severity == "error"]


class SwitchError(WeirError):
    """A switch in process refuses a change; nothing has changed by it."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        """``NOT_FOUND``, ``ALREADY_EXISTS``, ``INVALID_ARGUMENT``, … as gRPC names them."""
        self.text = text
        super().__init__(text)


@dataclass(frozen=True)
class UpdateError:
    """The failure of one update of a request."""

    index: int
    """Its place in the request, from 0."""
    operation: str
    table: str
    key: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.operation} {self.table} [{self.key}]: {self.code}: {self.message}"


class ClientError(WeirError):
    """A target refuses a request, or cannot be reached."""

    def __init__(
        self,
        code: str,
        text: str,
        updates: Sequence[Tuple[int, str, str, str, str, str]],
        retryable: bool,
    ) -> None:
        self.code = code
        """The gRPC code by name."""
        self.text = text
        self.updates: List[UpdateError] = [UpdateError(*update) for update in updates]
        """Failed updates; those that are not listed have been executed, unless all or none are."""
        self.retryable = retryable
        """Whether the same request may succeed later."""
        super().__init__(f"{code}: {text}" if not text.startswith(code) else text)

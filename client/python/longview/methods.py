"""Makes methods of a client from the functions of longview.calls."""

from __future__ import annotations

import inspect
from typing import Any, AsyncIterator, Callable, Coroutine, Iterator, TypeVar

from typing_extensions import Concatenate, ParamSpec

from longview.calls import Call, Stream

_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


def unary(build: Callable[_P, Call[_Answer]]) -> Callable[Concatenate[Any, _P], _Answer]:
    return _method(build, "_send")


def stream(build: Callable[_P, Stream[_Answer]]) -> Callable[Concatenate[Any, _P],
                                                             Iterator[_Answer]]:
    return _method(build, "_stream")


def async_unary(build: Callable[_P, Call[_Answer]]
                ) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _Answer]]:
    return _method(build, "_send")


def async_stream(build: Callable[_P, Stream[_Answer]]) -> Callable[Concatenate[Any, _P],
                                                                   AsyncIterator[_Answer]]:
    return _method(build, "_stream")


def _method(build: Callable[..., Any], send: str) -> Callable[..., Any]:
    """`build` as a method that sends the call by the client's method of this name."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self, send)(build(*args, **options))

    # Shown by help() and by editors.
    signature = inspect.signature(build)
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__name__ = build.__name__
    method.__qualname__ = build.__qualname__
    method.__doc__ = build.__doc__
    method.__signature__ = signature.replace(parameters=[self, *signature.parameters.values()])  # type: ignore[attr-defined]
    return method

from collections.abc import Callable
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])

@overload
def njit(function: _F, /) -> _F: ...
@overload
def njit(
    *,
    cache: bool = ...,
    parallel: bool = ...,
    fastmath: bool = ...,
    nogil: bool = ...,
    inline: str = ...,
    boundscheck: bool = ...,
) -> Callable[[_F], _F]: ...

prange = range

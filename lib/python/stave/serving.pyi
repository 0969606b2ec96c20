import concurrent.futures
from collections.abc import Callable
from os import PathLike
from typing import Any, Final, Literal, TypeVar

from . import _serving
from ._serving import Batch as Batch, Request as Request, Run as Run, Step as Step, current as current

_F = TypeVar("_F", bound=Callable[..., Any])
_Model = str | Callable[[Any], str] | None

JSON: Final = 1
CSV: Final = 2
PFTRACE: Final = 4
METRICS: Final = 8
TOKENS: Final = 16

class Server(_serving.Server):
    def __init__(self, trace_output: str | PathLike[str] | None = None, *, server: str | None = None, names: Literal["default", "newer"] = "default",
                 outputs: int = 0, truncate: bool = False, without_request_spans: bool = False, queue_records: int = 0,
                 full: Literal["drop", "block"] = "drop", flush_ms: int = 0, enabled: bool = True,
                 keep: str | None = None, rate: int = 0, by_parent: bool = False) -> None: ...
    @property
    def files(self) -> dict[str, str]: ...
    def __enter__(self) -> Server: ...

def open(trace_output: str | PathLike[str] | None = None, *, server: str | None = None, names: Literal["default", "newer"] = "default",
         outputs: int = 0, truncate: bool = False, without_request_spans: bool = False, queue_records: int = 0,
         full: Literal["drop", "block"] = "drop", flush_ms: int = 0, enabled: bool = True,
         keep: str | None = None, rate: int = 0, by_parent: bool = False) -> Server: ...
def carried(function: _F) -> _F: ...

class ThreadPoolExecutor(concurrent.futures.ThreadPoolExecutor): ...

class AsgiMiddleware:
    def __init__(self, app: Any, server: _serving.Server, model: _Model = None) -> None: ...
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

class WsgiMiddleware:
    def __init__(self, app: Any, server: _serving.Server, model: _Model = None) -> None: ...
    def __call__(self, environ: Any, start_response: Any) -> Any: ...

def asgi(app: Any, server: _serving.Server, model: _Model = None) -> AsgiMiddleware: ...
def wsgi(app: Any, server: _serving.Server, model: _Model = None) -> WsgiMiddleware: ...
def grpc_interceptor(server: _serving.Server, model: _Model = None, *, aio: bool = False) -> Any: ...

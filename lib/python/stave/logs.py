"""Log records as moments of the trace."""
import logging

from . import _stave


class Handler(logging.Handler):
    """``logging.getLogger().addHandler(stave.log_handler())``: the name is the message, level, logger and place are arguments.

    by_logger=True names the moments after their logger instead, for programs whose messages all differ.
    """

    def __init__(self, level=0, *, category="log", by_logger=False):
        super().__init__(level)
        self._category, self._by_logger = category, by_logger

    def emit(self, record):
        if not _stave.enabled(self._category):
            return
        try:
            args = {"level": record.levelname, "logger": record.name, "file": record.pathname, "line": record.lineno,
                    "function": record.funcName}
            if record.exc_info and record.exc_info[1] is not None:
                args["exception"] = record.exc_info[1]
            name = self.format(record)
            if self._by_logger:
                name, args["message"] = record.name, name
            _stave.instant(name, args, category=self._category)
        except Exception:
            self.handleError(record)

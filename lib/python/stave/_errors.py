"""What the library says of a failure, as an exception with its errno."""
import errno
import os
import re


def failure(text, path):
    """OSError with errno and path where the system refused; ValueError where an option or a name is not usable."""
    text = text.removesuffix("; tracing is off")
    for code in errno.errorcode:
        if text.endswith(os.strerror(code)):
            return OSError(code, os.strerror(code), path)
    if "memory" in text:
        return MemoryError(f"stave: {text}")
    text = re.sub("STAVE_[A-Z_]+", lambda m: m[0][6:].lower(), text.removeprefix(f"STAVE_OUT={path}: "))  # options have Python's names
    return ValueError(f"stave: {path}: {text}")


class OptionError(ValueError, TypeError):
    """An option that does not exist."""

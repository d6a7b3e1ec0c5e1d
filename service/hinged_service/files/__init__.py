"""Files as lazy, resumable sources of labelled events; each format has a module."""

from hinged_service.files.options import FileOptions
from hinged_service.files.record import FileError, Record
from hinged_service.files.source import Source, open_source
from hinged_service.files.together import open_sources

__all__ = ["FileError", "FileOptions", "Record", "Source", "open_source", "open_sources"]

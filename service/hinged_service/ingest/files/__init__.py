"""Files as lazy, resumable sources of labelled events; each format has a module."""

from hinged_service.ingest.files.column_types import open_sources
from hinged_service.ingest.files.file_source import Source, open_source
from hinged_service.ingest.files.options import FileOptions
from hinged_service.ingest.files.record import FileError, Record

__all__ = ["FileError", "FileOptions", "Record", "Source", "open_source", "open_sources"]

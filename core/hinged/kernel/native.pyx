# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inner loops in C: the same bits as `hinged.kernel.pure`, several times as fast.

A vector is an array of numbers; a table has their names, in the order in which they came, with an
index of hashes. Vectors that are asked about the same events, as those of a rule, of its classes and
of the experts of a pool, share a table.
An event is gathered into C arrays, which stay until the next: one of the same names takes over its
values alone, and goes on with the entries that were found for them. A name that was read from text
is first tried at the entry that it had last. Every function either passes an event on to the pure
version or leaves no trace of an error. The parts correspond to the files of `hinged.kernel.pure`;
those that read events have none.
"""

cimport cython
from cpython.dict cimport PyDict_CheckExact, PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble, PyLong_Check
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.math cimport INFINITY, NAN, copysign, exp, fabs, floor, isfinite, log, pow, sqrt
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from math import fsum
from os import urandom
from time import sleep

from hinged.kernel import pure

include "numbers.pxi"
include "names.pxi"
include "reader.pxi"
include "read_features.pxi"
include "event.pxi"
include "tables.pxi"
include "storage.pxi"
include "steps.pxi"
include "penalties.pxi"
include "rules.pxi"
include "runs.pxi"
include "squares.pxi"
include "scales.pxi"
include "probabilities.pxi"
include "classes.pxi"
include "means.pxi"
include "multiclass_rules.pxi"
include "pools.pxi"
include "class_pools.pxi"

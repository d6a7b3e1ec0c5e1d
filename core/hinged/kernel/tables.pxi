# Tables: names in the order in which they came, with an index of their hashes.
#
# Vectors whose names came in the same order share one table: each has the first names of it,
# as many as it has numbers. So the second vector of a rule has no look-ups of its own.

cdef struct Entry:
    PyObject *name  # owned
    Py_hash_t hash

cdef struct Table:
    Entry *entries
    uint64_t *index  # the upper half of a hash, and the number of an entry from 1
    Py_ssize_t count, room, mask
    Py_ssize_t users  # vectors, and look-ups while names are compared

cdef uint64_t UPPER = 0xFFFFFFFF00000000


cdef inline Py_ssize_t place(Py_hash_t hash, Py_ssize_t mask) noexcept:
    """Return where to look first: hashes of whole and binary numbers differ in few bits."""
    cdef uint64_t mixed = (<uint64_t>hash ^ (<uint64_t>hash >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return <Py_ssize_t>((mixed ^ (mixed >> 32)) & <uint64_t>mask)


cdef inline Py_ssize_t names_in(const Table *table) noexcept:
    return 0 if table == NULL else table.count


cdef Table *new_table() except NULL:
    """Return an empty table with one user."""
    cdef Table *table = <Table *>PyMem_Calloc(1, sizeof(Table))
    if table == NULL:
        raise MemoryError
    table.mask = -1
    table.users = 1
    return table


cdef void leave(Table *table) noexcept:
    """Let go of a table; the last user frees it."""
    cdef Py_ssize_t i
    if table == NULL:
        return
    table.users -= 1
    if table.users:
        return
    for i in range(table.count):
        Py_XDECREF(table.entries[i].name)
    PyMem_Free(table.entries)
    PyMem_Free(table.index)
    PyMem_Free(table)


cdef void index_entry(Table *table, Py_ssize_t slot) noexcept:
    cdef Py_hash_t hash = table.entries[slot].hash
    cdef Py_ssize_t at = place(hash, table.mask)
    while table.index[at]:
        at = (at + 1) & table.mask
    table.index[at] = (<uint64_t>hash & UPPER) | <uint64_t>(slot + 1)


cdef inline int32_t likely(const Table *table, Py_hash_t hash) noexcept:
    """Return the first entry whose hash looks like this one, -1 if there is none."""
    cdef Py_ssize_t at = place(hash, table.mask)
    cdef uint64_t mark = table.index[at], upper = <uint64_t>hash & UPPER
    while mark and mark & UPPER != upper:
        at = (at + 1) & table.mask
        mark = table.index[at]
    return <int32_t>(<uint32_t>mark - 1)


cdef int reserve(Table *table, Py_ssize_t count) except -1:
    """Make room for so many entries."""
    cdef Py_ssize_t room = table.room, size = 16, i
    cdef void *block
    if count <= room:
        return 0
    if count > 0x3FFFFFFF:
        raise MemoryError("too many names")
    room = max(count, room + room // 2, 8)
    table.entries = <Entry *>wider(table.entries, room * sizeof(Entry))
    while size < room + room // 2:
        size *= 2
    if size - 1 != table.mask:
        block = PyMem_Calloc(size, sizeof(uint64_t))
        if block == NULL:
            raise MemoryError
        PyMem_Free(table.index)
        table.index = <uint64_t *>block
        table.mask = size - 1
        for i in range(table.count):
            index_entry(table, i)
    table.room = room
    return 0


cdef int add_entry(Table *table, PyObject *name, Py_hash_t hash) except -1:
    """Add a name that is not there."""
    reserve(table, table.count + 1)
    Py_INCREF(<object>name)
    table.entries[table.count].name = name
    table.entries[table.count].hash = hash
    index_entry(table, table.count)
    table.count += 1
    return 0

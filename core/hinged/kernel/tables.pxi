# Tables: names in the order in which they came, with an index of their hashes.
#
# Vectors that are asked about the same events share one table: those of a rule, of all classes, and
# of all experts. So a name is looked up once for all of them.

cdef struct Entry:
    PyObject *name  # owned
    Py_hash_t hash

cdef struct Found:
    uint64_t serial  # of an event
    Py_ssize_t names  # of the table then
    int32_t *slots  # the entry of each name of the event, -1 if it is not there
    Py_ssize_t room

cdef struct Table:
    Entry *entries
    uint64_t *index  # the upper half of a hash, and the number of an entry from 1
    Py_ssize_t count, room, mask
    Py_ssize_t users  # vectors, events, and look-ups while names are compared
    Found[2] found  # of an event, and of one that was made of it
    int32_t *squares  # by the number of an entry: that of the name of its square from 1, 0 if it is
    Py_ssize_t squares_room  # not known
    bint plain  # whether all names are texts and whole numbers
    bint by_hint  # whether a quarter of the hints were right for the event before

cdef uint64_t UPPER = 0xFFFFFFFF00000000


cdef inline Py_ssize_t place(Py_hash_t hash, Py_ssize_t mask) noexcept:
    """Return where to look first: hashes of whole and binary numbers differ in few bits."""
    cdef uint64_t mixed = (<uint64_t>hash ^ (<uint64_t>hash >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return <Py_ssize_t>((mixed ^ (mixed >> 32)) & <uint64_t>mask)


cdef Table *new_table() except NULL:
    """Return an empty table with one user."""
    cdef Table *table = <Table *>PyMem_Calloc(1, sizeof(Table))
    if table == NULL:
        raise MemoryError
    table.mask = -1
    table.users = 1
    table.plain = table.by_hint = True
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
    PyMem_Free(table.squares)
    for i in range(2):
        PyMem_Free(table.found[i].slots)
    PyMem_Free(table)


cdef Py_ssize_t size_of(const Table *table) noexcept:
    """Return the bytes that a table takes for each of its users."""
    cdef size_t size = sizeof(Table) + table.room * sizeof(Entry)
    size += (table.mask + 1) * sizeof(uint64_t)
    size += (table.found[0].room + table.found[1].room + table.squares_room) * sizeof(int32_t)
    return <Py_ssize_t>size // table.users


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
    while size < room + room // 4:
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
    table.plain = table.plain and hk_is_plain(name)
    index_entry(table, table.count)
    table.count += 1
    return 0


cdef int32_t entry_of(Table *table, PyObject *name, Py_hash_t hash) except -2:
    """Return the number of a name's entry, -1 if it is not there; the caller holds the table."""
    cdef uint64_t mark, upper = <uint64_t>hash & UPPER
    cdef Py_ssize_t at, count
    cdef int32_t slot
    cdef PyObject *stored
    cdef bint same
    if table.mask < 0:
        return -1
    at = place(hash, table.mask)
    while True:
        mark = table.index[at]
        if mark == 0:
            return -1
        if mark & UPPER == upper:
            slot = <int32_t>(<uint32_t>mark - 1)
            stored = table.entries[slot].name
            if stored == name:
                return slot
            if table.entries[slot].hash == hash:
                if hk_is_text(stored) and hk_is_text(name):
                    if hk_same_text(stored, name):
                        return slot
                else:
                    count = table.count
                    Py_INCREF(<object>stored)
                    try:
                        same = PyObject_RichCompareBool(stored, name, Py_EQ)
                    finally:
                        Py_XDECREF(stored)
                    if count != table.count:
                        raise RuntimeError("the vector changed while a name was looked up")
                    if same:
                        return slot
        at = (at + 1) & table.mask


cdef inline bint is_at(const Entry *entry, PyObject *name, Py_hash_t hash) noexcept:
    """Return whether the text `name` is that of an entry."""
    return entry.name == name or (
        entry.hash == hash
        and hk_is_text(name)
        and hk_is_text(entry.name)
        and hk_same_text(entry.name, name)
    )


cdef void guess(const Table *table, Event *event) noexcept:
    """Make `places` the entries that the names are likely to have, and fetch these.

    Of a large table they are in no cache: what is on its way for one name is not waited
    for before the next.
    """
    cdef int32_t *places = event.places
    cdef Py_ssize_t i, given = event.count - event.squares
    cdef int32_t slot
    if table.count == 0:
        for i in range(given):
            places[i] = -1
        return
    for i in range(given):
        slot = hint_of(event, i)[0] if table.by_hint else -1
        if 0 <= slot < table.count:
            HK_PREFETCH(&table.entries[slot])
        else:
            slot = -1
            HK_PREFETCH(&table.index[place(event.hashes[i], table.mask)])
        places[i] = slot
    for i in range(given):
        if places[i] < 0:
            slot = places[i] = likely(table, event.hashes[i])
            if slot >= 0:
                HK_PREFETCH(&table.entries[slot])


cdef int32_t entry_of_square(Table *table, Event *event, Py_ssize_t i) except -2:
    """Return the number of the entry of a square's name, known by that of its root if it was found."""
    cdef int32_t root = event.places[event.roots[i - (event.count - event.squares)]], slot
    cdef Py_ssize_t room
    if 0 <= root < table.squares_room and table.squares[root]:
        return table.squares[root] - 1
    name_square(event, i)
    slot = entry_of(table, event.names[i], event.hashes[i])
    if root >= 0 and slot >= 0:
        if root >= table.squares_room:
            room = table.room
            table.squares = <int32_t *>wider(table.squares, room * sizeof(int32_t))
            memset(
                table.squares + table.squares_room, 0, (room - table.squares_room) * sizeof(int32_t)
            )
            table.squares_room = room
        table.squares[root] = slot + 1
    return slot


cdef int locate(Table *table, Event *event) except -1:
    """Find the entry of each name of an event: `found` has them until the next event.

    The caller holds the table. A comparison of names may come back to this table: `found` changes at the end, at once.
    """
    cdef Found *found = &table.found[event.side]
    cdef Py_ssize_t i, right = 0, names = table.count, given = event.count - event.squares
    cdef int32_t slot, hint
    cdef bint again = found.serial == event.serial
    if again and found.names == names:
        return 0
    if not again:
        guess(table, event)
    elif event.count:
        memcpy(event.places, found.slots, event.count * sizeof(int32_t))
    for i in range(given):
        slot = event.places[i]
        if again and slot >= 0:
            continue
        hint = hint_of(event, i)[0]
        if slot < 0 and not again and names == table.count:
            pass  # nothing of its hash is there
        elif slot < 0 or not is_at(&table.entries[slot], event.names[i], event.hashes[i]):
            slot = entry_of(table, event.names[i], event.hashes[i])
        if slot >= 0 and slot != hint:
            hint_of(event, i)[0] = slot
        right += 0 <= slot == hint
        event.places[i] = slot
    for i in range(given, event.count):
        if not again or event.places[i] < 0:
            event.places[i] = entry_of_square(table, event, i)
    if event.count > found.room:
        found.slots = <int32_t *>wider(found.slots, event.count * sizeof(int32_t))
        found.room = event.count
    if event.count:
        memcpy(found.slots, event.places, event.count * sizeof(int32_t))
    found.serial, found.names = event.serial, names
    if not again:
        table.by_hint = 4 * right >= given
    return 0

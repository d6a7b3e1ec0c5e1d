# Tables: names in the order in which they came, with an index of their hashes.
#
# Vectors that are asked about the same events share one table: those of a rule, of all classes, and
# of all experts. So a name is looked up once for all of them.

cdef enum:
    MOST_STORED = 0xFFFFFFF  # names

cdef struct Entry:
    PyObject *name  # owned
    Py_hash_t hash

cdef struct Found:
    uint64_t serial  # of an event
    Py_ssize_t names  # of the table then
    int32_t *slots  # the entry of each name of the event, -1 if it is not there
    Py_ssize_t room
    bint all_there

cdef struct Table:
    Entry *entries
    int32_t *index  # by hash: the number of an entry from 1, 0 at a free place
    Py_ssize_t count, room, mask
    Py_ssize_t users  # vectors, events, and look-ups while names are compared
    Found[2] found  # of an event, and of one that was made of it
    int32_t *squares  # by the number of an entry: that of the name of its square from 1, 0 if it is
    Py_ssize_t squares_room  # not known
    bint plain  # whether all names are texts and whole numbers
    bint by_hint  # whether a quarter of the hints were right for the event before


cdef inline Py_ssize_t place(Py_hash_t hash, Py_ssize_t mask) noexcept nogil:
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


cdef inline void leave(Table *table) noexcept nogil:
    """Let go of a table; the last user frees it."""
    if table == NULL:
        return
    table.users -= 1
    if not table.users:
        with gil:
            free_table(table)


cdef void free_table(Table *table) noexcept:
    cdef Py_ssize_t i
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
    size += (table.mask + 1) * sizeof(int32_t)
    size += (table.found[0].room + table.found[1].room + table.squares_room) * sizeof(int32_t)
    return <Py_ssize_t>size // table.users


cdef void index_entry(Table *table, Py_ssize_t slot) noexcept:
    cdef Py_ssize_t at = place(table.entries[slot].hash, table.mask)
    while table.index[at]:
        at = (at + 1) & table.mask
    table.index[at] = <int32_t>slot + 1


cdef int32_t entry_of_hash(const Table *table, Py_hash_t hash) noexcept:
    """Return the number of the first entry of a hash, -1 if there is none."""
    cdef Py_ssize_t at
    if table.mask < 0:
        return -1
    at = place(hash, table.mask)
    while table.index[at] and table.entries[table.index[at] - 1].hash != hash:
        at = (at + 1) & table.mask
    return table.index[at] - 1


cdef int reserve(Table *table, Py_ssize_t count) except -1:
    """Make room for so many entries."""
    cdef Py_ssize_t room = table.room, size = 16, i
    cdef void *block
    if count <= room:
        return 0
    if count > MOST_STORED:
        raise MemoryError("too many names")
    room = max(count, room + room // 2, 8)
    table.entries = <Entry *>wider(table.entries, room * sizeof(Entry))
    while size < 2 * room:  # half of it is free, so that most names are found at once
        size *= 2
    if size - 1 != table.mask:
        block = PyMem_Calloc(size, sizeof(int32_t))
        if block == NULL:
            raise MemoryError
        PyMem_Free(table.index)
        table.index = <int32_t *>block
        table.mask = size - 1
        for i in range(table.count):
            index_entry(table, i)
    table.room = room
    return 0


cdef int add_entry(Table *table, PyObject *name, Py_hash_t hash) except -1:
    """Add a name that is not there."""
    reserve(table, table.count + 1)
    Py_XINCREF(name)
    table.entries[table.count].name = name
    table.entries[table.count].hash = hash
    table.plain = table.plain and hk_is_plain(name)
    index_entry(table, table.count)
    table.count += 1
    return 0


cdef int32_t entry_of(Table *table, PyObject *name, Py_hash_t hash) except -2 nogil:
    """Return the number of a name's entry, -1 if it is not there; the caller holds the table."""
    cdef Py_ssize_t at
    cdef int32_t slot
    cdef PyObject *stored
    cdef bint same
    if table.mask < 0:
        return -1
    at = place(hash, table.mask)
    while True:
        slot = table.index[at] - 1
        if slot < 0:
            return -1
        stored = table.entries[slot].name
        if stored == name:
            return slot
        if table.entries[slot].hash == hash:
            if hk_is_text(stored) and hk_is_text(name):
                if hk_same_text(stored, name):
                    return slot
            elif hk_is_whole(stored) and hk_is_whole(name):
                if hk_same_whole(stored, name):
                    return slot
            else:
                with gil:
                    same = is_equal(table, stored, name)
                if same:
                    return slot
        at = (at + 1) & table.mask


cdef bint is_equal(Table *table, PyObject *stored, PyObject *name) except -1:
    """Return whether a name of the table equals another one, as Python compares them."""
    cdef Py_ssize_t count = table.count
    cdef bint same
    Py_XINCREF(stored)
    try:
        same = PyObject_RichCompareBool(stored, name, Py_EQ)
    finally:
        Py_XDECREF(stored)
    if count != table.count:
        raise RuntimeError("the vector changed while a name was looked up")
    return same


cdef inline bint is_at(const Entry *entry, PyObject *name, Py_hash_t hash) noexcept nogil:
    """Return whether the text `name` is that of an entry."""
    return entry.name == name or (
        entry.hash == hash
        and hk_is_text(name)
        and hk_is_text(entry.name)
        and hk_same_text(entry.name, name)
    )


cdef void guess(const Table *table, Event *event) noexcept nogil:
    """Make `places` the entries that the names are likely to have, -1 if none; fetch these.

    Of a large table they are in no cache: what is on its way for one name is not waited
    for before the next.
    """
    cdef const Entry *entries = table.entries
    cdef const int32_t *index = table.index
    cdef const int32_t *hints = event.hints
    cdef const int32_t *numbers = event.numbers
    cdef const Py_hash_t *hashes = event.hashes
    cdef int32_t *places = event.places
    cdef Py_ssize_t i, mask = table.mask, given = event.count - event.squares
    cdef int32_t slot, count = <int32_t>table.count
    cdef bint by_hint = table.by_hint and event.hints != NULL
    if count == 0:
        for i in range(given):
            places[i] = -1
        return
    for i in range(given):
        if by_hint:
            slot = hints[numbers[i]]
            if 0 <= slot < count:
                HK_PREFETCH(&entries[slot])
                places[i] = slot
                continue
        slot = <int32_t>place(hashes[i], mask)
        HK_PREFETCH(&index[slot])
        places[i] = -2 - slot
    for i in range(given):
        slot = places[i]
        if slot < 0:
            slot = places[i] = index[-2 - slot] - 1
            if slot >= 0:
                HK_PREFETCH(&entries[slot])


cdef bint hint(Event *event) noexcept nogil:
    """Note the entries of an event's names; return whether a quarter of them were known."""
    cdef const int32_t *places = event.places
    cdef const int32_t *numbers = event.numbers
    cdef int32_t *hints = event.hints
    cdef Py_ssize_t i, at, right = 0
    for i in range(event.count):
        at = numbers[i]
        if places[i] == hints[at]:
            right += places[i] >= 0
        elif places[i] >= 0:
            hints[at] = places[i]
    return 4 * right >= event.count


cdef int32_t entry_of_square(Table *table, Event *event, Py_ssize_t i) except -2 nogil:
    """Return the number of the entry of a square's name, known by that of its root if it was found."""
    cdef int32_t root = event.places[event.roots[i - (event.count - event.squares)]], slot
    cdef Py_ssize_t room
    if 0 <= root < table.squares_room and table.squares[root]:
        return table.squares[root] - 1
    with gil:
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


cdef int locate(Table *table, Event *event) except -1 nogil:
    """Find the entry of each name of an event: `found` has them until the next event.

    The caller holds the table. A comparison of names may come back to this table: `found` changes at the end, at once.
    """
    cdef Found *found = &table.found[event.side]
    cdef PyObject **names = event.names
    cdef int32_t *places = event.places
    cdef Py_ssize_t i, before = table.count, given = event.count - event.squares
    cdef int32_t slot
    cdef bint again = found.serial == event.serial, all_there = True
    if again and found.names == before:
        return 0
    if not again:
        guess(table, event)
    elif event.count:
        memcpy(places, found.slots, event.count * sizeof(int32_t))
    for i in range(given):
        slot = places[i]
        if again and slot >= 0:
            continue
        if slot >= 0 and table.entries[slot].name == names[i]:
            continue
        if slot < 0 and not again and before == table.count:
            pass  # its place in the index is free
        elif slot < 0 or not is_at(&table.entries[slot], names[i], event.hashes[i]):
            slot = entry_of(table, names[i], event.hashes[i])
        places[i] = slot
        all_there = all_there and slot >= 0
    if event.hints != NULL and not again:
        table.by_hint = hint(event)
    for i in range(given, event.count):
        if not again or places[i] < 0:
            places[i] = entry_of_square(table, event, i)
            all_there = all_there and places[i] >= 0
    if event.count > found.room:
        found.slots = <int32_t *>wider(found.slots, event.count * sizeof(int32_t))
        found.room = event.count
    if event.count:
        memcpy(found.slots, places, event.count * sizeof(int32_t))
    found.serial, found.names, found.all_there = event.serial, before, all_there
    return 0

# Numbers: texts of JSON as doubles, next to what they say, and where a text ends.

cdef extern from *:
    """
    /* The double next to m 10^power, for m > 0 and a power of -27 to 27: 5^27 is below 2^63, so
       product and quotient are exact up to a last bit that tells whether anything is left. */
    static double hk_scaled(uint64_t m, int power) {
        static const uint64_t fives[28] = {
            1ULL, 5ULL, 25ULL, 125ULL, 625ULL, 3125ULL, 15625ULL, 78125ULL, 390625ULL,
            1953125ULL, 9765625ULL, 48828125ULL, 244140625ULL, 1220703125ULL, 6103515625ULL,
            30517578125ULL, 152587890625ULL, 762939453125ULL, 3814697265625ULL,
            19073486328125ULL, 95367431640625ULL, 476837158203125ULL, 2384185791015625ULL,
            11920928955078125ULL, 59604644775390625ULL, 298023223876953125ULL,
            1490116119384765625ULL, 7450580596923828125ULL,
        };
        unsigned __int128 wide;
        uint64_t top, scale_bits;
        double scale;
        int up = __builtin_clzll(m), exponent = power - up, left;
        m <<= up;
        if (power >= 0) {
            wide = (unsigned __int128)m * fives[power];
            if (!(wide >> 64)) {
                wide <<= 64;
                exponent -= 64;
            }
            up = __builtin_clzll((uint64_t)(wide >> 64));
            wide <<= up;
            exponent += 64 - up;
            top = (uint64_t)(wide >> 64);
            left = (uint64_t)wide != 0;
        } else {
            uint64_t divisor = fives[-power];
            up = __builtin_clzll(divisor);
            divisor <<= up;
            exponent += up - 63;
            wide = (unsigned __int128)m << 63;
            top = (uint64_t)(wide / divisor);
            left = wide != (unsigned __int128)top * divisor;
            if (!(top >> 63)) {
                top <<= 1;
                exponent -= 1;
            }
        }
        m = top >> 11;
        top &= 0x7FF;
        if (top > 0x400 || (top == 0x400 && (left || (m & 1)))) m += 1;
        scale_bits = (uint64_t)(exponent + 11 + 1023) << 52;
        memcpy(&scale, &scale_bits, sizeof scale);
        return (double)m * scale;
    }
    """
    double hk_scaled(uint64_t m, int power) noexcept nogil

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *, char **, PyObject *) except? -1.0

cdef enum:
    MOST_DIGITS = 400  # bytes of a number

cdef double MOST_SIZE = 1e100
cdef double[23] TENS
for _power in range(23):
    TENS[_power] = 10.0 ** _power


cdef inline bint is_digit(char sign) noexcept nogil:
    return c"0" <= sign <= c"9"


cdef inline const char *past_space(const char *p) noexcept nogil:
    while p[0] == c" " or p[0] == c"\n" or p[0] == c"\r" or p[0] == c"\t":
        p += 1
    return p


cdef inline const char *past_text(const char *p) noexcept nogil:
    """Return the address of the closing mark of a text, NULL for one that is not plain."""
    while p[0] != c'"':
        if <uint8_t>p[0] < 32 or p[0] == c"\\":
            return NULL
        p += 1
    return p


cdef inline const char *past_digits(const char *p, uint64_t *m) noexcept nogil:
    """Append digits to a number, modulo 2^64; return where they end."""
    cdef uint64_t total = m[0]
    cdef uint8_t digit = <uint8_t>(p[0] - c"0")
    while digit < 10:
        total = total * 10 + digit
        p += 1
        digit = <uint8_t>(p[0] - c"0")
    m[0] = total
    return p


cdef const char *number_at(const char *p, double *value) except? NULL nogil:
    """Read a number of JSON; return what is behind it, NULL for one that is not plain."""
    cdef const char *start = p
    cdef const char *part
    cdef const char *first  # of the digits that count, behind all zeros
    cdef char *stop
    cdef uint64_t m = 0
    cdef int digits = 0, power = 0, exponent = 0
    cdef bint negative = p[0] == c"-", less, whole = True
    p += negative
    if p[0] == c"0":
        p += 1
    elif is_digit(p[0]):
        first = p
        p = past_digits(p, &m)
        digits = <int>(p - first)
    else:
        return NULL
    if p[0] == c".":
        whole = False
        part = first = p + 1
        if digits == 0:
            while first[0] == c"0":
                first += 1
        p = past_digits(first, &m)
        digits += <int>(p - first)
        if p == part:
            return NULL
        if p - start > MOST_DIGITS:
            return NULL
        power = -<int>(p - part)
    if p[0] == c"e" or p[0] == c"E":
        whole = False
        p += 1
        less = p[0] == c"-"
        if less or p[0] == c"+":
            p += 1
        if not is_digit(p[0]):
            return NULL
        while is_digit(p[0]):
            if exponent < 100000:
                exponent = exponent * 10 + (p[0] - c"0")
            p += 1
        power += -exponent if less else exponent
    if p - start > MOST_DIGITS:
        return NULL
    if digits > 19 or (m != 0 and not -27 <= power <= 27):
        with gil:
            value[0] = PyOS_string_to_double(start, &stop, NULL)
        return p if stop == p and -MOST_SIZE <= value[0] <= MOST_SIZE else NULL
    if m == 0:
        value[0] = 0.0
    elif m <= <uint64_t>1 << 53 and -22 <= power <= 22:
        value[0] = <double>m / TENS[-power] if power < 0 else <double>m * TENS[power]
    else:
        value[0] = hk_scaled(m, power)
    if negative and not (whole and m == 0):  # the integer -0 is 0
        value[0] = -value[0]
    return p


cdef long long whole_number(const char *p, const char *end) noexcept nogil:
    cdef long long total = 0
    cdef bint negative = p[0] == c"-"
    p += negative
    while p < end:
        total = total * 10 + (p[0] - c"0")
        p += 1
    return -total if negative else total

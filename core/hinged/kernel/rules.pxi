# Rules: an ordinary event of a binary learner in one call.

cdef class Accounting:
    """Running totals of a learner: see `hinged.kernel.pure.Accounting`."""

    cdef public object events, mistakes, updates, overflows, ignored
    cdef public double hinge_loss, perceptron_loss, radius

    def __init__(
        self,
        events=0,
        mistakes=0,
        updates=0,
        double hinge_loss=0.0,
        double perceptron_loss=0.0,
        double radius=0.0,
        overflows=0,
        ignored=0,
    ):
        self.events, self.mistakes, self.updates = events, mistakes, updates
        self.hinge_loss, self.perceptron_loss = hinge_loss, perceptron_loss
        self.radius, self.overflows, self.ignored = radius, overflows, ignored

    def __reduce__(self):
        return type(self), tuple([getattr(self, name) for name in pure.TOTALS])

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __repr__(self):
        totals = ", ".join([f"{name}={getattr(self, name)!r}" for name in pure.TOTALS])
        return f"Accounting({totals})"

    def add_margin(self, double margin):
        self._add_margin(margin)

    def add_norm(self, double norm, double constant):
        self._add_norm(norm, constant)

    cdef void _add_margin(self, double margin) noexcept:
        cdef double total = self.hinge_loss + (1.0 - margin)
        self.hinge_loss = total if total < LARGEST else LARGEST
        if margin < 0.0:
            total = self.perceptron_loss - margin
            self.perceptron_loss = total if total < LARGEST else LARGEST

    cdef void _add_norm(self, double norm, double constant) noexcept:
        cdef double reach
        if norm + 1.0 > self.radius:
            reach = pair_norm(norm, constant)
            if reach > self.radius:
                self.radius = reach if reach < LARGEST else LARGEST


cdef struct Told:
    double score, loss
    bint positive, mistake, updated


cdef enum:
    PERCEPTRON = 1
    UNCAPPED
    CAPPED
    SQUARED
    AROW
    SCW
    CONSTANT
    SQRT
    ADAGRAD
    RMS
    LOGISTIC_ADAGRAD


cdef class BinaryCore:
    """A binary learner's ordinary event at once: see `hinged.kernel.pure.BinaryCore`."""

    cdef public Storage _weights
    cdef public Accounting accounting
    cdef public object clock, max_features
    cdef public double intercept, _constant
    cdef public bint label_at_zero
    cdef public int _rule

    def __getstate__(self):
        return {**self.__dict__, **{name: getattr(self, name) for name in CORE}}

    def __setstate__(self, dict state):
        for name, value in state.items():
            setattr(self, name, value)

    def _raw_score(self, x):
        return self._score(x)

    def _served_score(self, x):
        return self._score(x)

    cdef object _score(self, x):
        cdef Event *event
        if not self._weights.plain:
            return self._weights.dot(x) + self.intercept
        event = gathered(x)
        try:
            return self._weights._dot(event) + self.intercept
        finally:
            released(event)

    def _learn_at_once(self, x, y, w):
        """Learn an ordinary event and return its outcome, or change nothing and return `None`."""
        cdef Event *event
        cdef Told told
        if not (PyDict_CheckExact(x) and (y is True or y is False) and type(w) is float):
            return None
        try:
            event = gathered(x)
        except TypeError:
            return None
        try:
            if not self._learned(event, 1.0 if y is True else -1.0, w, &told):
                return None
        finally:
            released(event)
        return told.positive, told.score, told.mistake, told.updated, told.loss

    def _learn_rows(self, list names, const double[:, ::1] rows, const double[::1] targets):
        """Learn rows, the first of these, as long as they are ordinary; return how many."""
        cdef Event *event
        cdef Told told
        cdef Py_ssize_t row, i, count = len(names)
        event = gathered(dict.fromkeys(names, 0.0))
        try:
            if event.count != count or count != rows.shape[1]:
                return 0
            for row in range(rows.shape[0]):
                for i in range(count):
                    event.values[i] = rows[row, i]
                event.has_norm = False
                if not self._learned(event, targets[row], 1.0, &told):
                    return row
            return rows.shape[0]
        finally:
            forget(event)
            released(event)

    cdef bint _learned(self, Event *event, double target, double w, Told *told) except -1:
        """Learn an event; return whether it was ordinary, else nothing has changed."""
        cdef Storage weights = self._weights, second = None
        cdef int rule = self._rule
        cdef double step = 0.0, beta = 0.0, forgetting = 0.0, rate = 0.0, decay = -1.0, slope
        cdef double spread, constant = self._constant, own = 0.0, size, bound = 0.0, score, margin
        cdef double intercept = self.intercept
        cdef bint called = True
        cdef object given
        if rule == 0 or weights is None or not weights.plain or not 0.0 < w < INFINITY:
            return False
        if self.max_features is not None and weights.count + event.count > self.max_features:
            return False
        score = weights._dot_and_norm(event) + intercept
        size = event.norm
        if not (isfinite(score) and size < INFINITY):
            return False
        margin = target * score
        told.score = score
        told.positive = score > 0.0 or (self.label_at_zero and score == 0.0)
        told.mistake = told.positive != (target > 0.0)
        told.loss = 1.0 - margin if margin < 1.0 else 0.0

        if rule == PERCEPTRON:
            given = self._learning_rate
            if type(given) is not float:
                return False
            if margin <= <double>self._update_margin and (told.mistake or self._on_tie):
                step = <double>given * w * target
        elif rule <= SQUARED:
            if rule == UNCAPPED and w != 1.0:
                return False
            if margin <= 1.0:
                step = aggressive_step(
                    rule, <double>self._C * w, 1.0 - margin, size * size + constant
                ) * target
        elif rule <= SCW:
            second = self._variance
            if margin <= 1.0 or rule == SCW:
                own = self.intercept_variance
                spread = spread_of(second, event)
                if not isfinite(spread):
                    return False
                if rule == AROW:
                    slope = spread + own * constant + <double>self._r / w
                    if not slope > 0.0:
                        return False
                    beta = 1.0 / slope
                    step = (1.0 - margin) * beta * target
                    forgetting = self._forgetting
                else:
                    step = soft_step(
                        margin, spread + own * constant, self._phi, <double>self._C * w, &beta
                    ) * target
        elif rule <= SQRT:
            given = self._learning_rate
            if type(given) is not float:
                return False
            if margin <= 1.0:
                rate = given
                if rule == SQRT:
                    rate = rate / sqrt(<double>(self.clock + 1))
                step = rate * w * target
        else:
            given = self._learning_rate
            if type(given) is not float:
                return False
            rate = given
            second = self._squares
            own = self.intercept_squares
            if rule == ADAGRAD:
                called = margin <= 1.0
                if called:
                    own += w * w
                    if own > 0.0:
                        step = rate / sqrt(own) * w * target
                    intercept = intercept + step * constant
                    adaptive_results(weights, second, event, rate, target, w)
            else:
                if rule == RMS:
                    decay = self._decay
                slope = -target * w * residual(margin)
                called = slope != 0.0
                if called:
                    logistic_step(rate, decay, slope * constant, &intercept, &own)
                    logistic_results(weights, second, event, slope, rate, decay)
            if called and not (isfinite(intercept) and isfinite(own) and results_finite(event, 2)):
                return False

        if rule <= SQRT:
            called = step != 0.0
            if called:
                intercept = intercept + step * (constant if second is None else own * constant)
                bound = weights.bound + fabs(step) * size
                if not (bound < SAFE_BOUND and isfinite(intercept)):
                    return False
                weights._open(event)
        told.updated = called

        cdef Accounting account = self.accounting
        account.events += 1
        self.clock += 1
        if margin < 1.0:
            account._add_margin(margin)
        if told.mistake:
            account.mistakes += 1
        account._add_norm(size, constant)
        if not called:
            return True
        if rule > SQRT:
            weights._set(event, 0)
            second._set(event, 1)
            self.intercept_squares = own
        elif second is not None:
            weights.bound = bound
            move_by_confidence(weights, second, event, step, beta, forgetting)
            own = own - beta * (own * constant) * (own * constant)
            if not own > 0.0:
                own = 0.0
            if forgetting > 0.0:
                own = own / (1.0 - forgetting + forgetting * own)
            self.intercept_variance = own
        else:
            weights.bound = bound
            weights._add_found(event, step)
        self.intercept = intercept
        account.updates += 1
        return True


cdef double LARGEST = pure.LARGEST
CORE = ("_weights", "accounting", "clock", "max_features", "intercept", "_constant")
CORE += ("label_at_zero", "_rule")


cdef double residual(double margin) noexcept:
    cdef double odds
    if margin < 0.0:
        return 1.0 / (1.0 + exp(margin))
    odds = exp(-margin)
    return odds / (1.0 + odds)


cdef double aggressive_step(int rule, double cap, double loss, double norm2) noexcept:
    cdef double divisor, tau
    if norm2 == INFINITY:
        return 0.0
    if rule == SQUARED:
        divisor = norm2 + 0.5 / cap if cap > 0.0 else 0.0
        return loss / divisor if divisor > 0.0 else 0.0
    if norm2 == 0.0:
        return 0.0
    tau = loss / norm2
    if rule == CAPPED:
        return tau if tau < cap else cap
    return tau if tau < INFINITY else 0.0


cdef double soft_step(double margin, double v, double phi, double cap, double *beta) noexcept:
    cdef double square, h, alpha, spread, total
    beta[0] = 0.0
    if v == 0.0 or margin >= phi * sqrt(v):
        return 0.0
    square = phi * phi
    h = pair_norm(margin * square / 2.0, phi * sqrt(v * (1.0 + square)))
    alpha = h - margin * (1.0 + square / 2.0)
    if not alpha > 0.0:
        alpha = 0.0
    alpha = alpha / (1.0 + square) / v
    if not alpha < cap:
        alpha = cap
    spread = alpha * v * phi
    total = (pair_norm(spread, 2.0 * sqrt(v)) - spread) / 2.0 + spread
    beta[0] = alpha * phi / total if total > 0.0 else NAN
    return alpha

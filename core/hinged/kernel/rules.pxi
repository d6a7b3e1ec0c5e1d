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
        return pure.revived_accounting, tuple([getattr(self, name) for name in pure.TOTALS])

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


cdef struct Given:
    bint ordinary, on_tie
    double margin, rate, C, r, phi, forgetting, decay, clock
    double own  # the intercept's own variance or squares
    Py_ssize_t events, mistakes, updates  # so far


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
        cdef Storage weights = self._weights  # held: a comparison of names may replace it
        if weights is None or not weights.plain:
            return weights.dot(x) + self.intercept
        event = gathered(x)
        try:
            return weights._dot(event) + self.intercept
        finally:
            released(event)

    def _learn_at_once(self, x, y, w):
        """Learn an ordinary event and return its outcome, or change nothing and return `None`."""
        cdef Event *event
        cdef Told told
        if not (
            (PyDict_CheckExact(x) or type(x) is ReadFeatures)
            and (y is True or y is False)
            and type(w) is float
        ):
            return None
        try:
            event = gathered(x)
        except TypeError:
            return None
        try:
            if not self._learn_event(event, 1.0 if y is True else -1.0, w, &told):
                return None
        finally:
            released(event)
        return told.positive, told.score, told.mistake, told.updated, told.loss

    def _learn_rows(self, list names, const double[:, ::1] rows, const double[::1] targets):
        """Learn rows, the first of these, as long as they are ordinary; return how many."""
        cdef Event *event
        cdef Told told
        cdef Given given
        cdef double *own_values
        cdef Py_ssize_t row, count = len(names)
        cdef Storage second = self._given(&given)
        if not given.ordinary:
            return 0
        event = gathered(dict.fromkeys(names, 0.0))
        own_values = event.values
        try:
            if event.count != count or count != rows.shape[1]:
                return 0
            for row in range(rows.shape[0]):
                event.values = <double *>&rows[row, 0]
                event.has_norm = False
                if not self._learned(event, targets[row], 1.0, &told, &given, second):
                    return row
            return rows.shape[0]
        finally:
            event.values = own_values
            forget(event)
            released(event)
            self._keep(&given)

    cdef bint _learn_event(self, Event *event, double target, double w, Told *told) except -1:
        """Learn an event; return whether it was ordinary, else nothing has changed."""
        cdef Given given
        cdef Storage second = self._given(&given)
        if not (given.ordinary and self._learned(event, target, w, told, &given, second)):
            return False
        self._keep(&given)
        return True

    cdef Storage _given(self, Given *given):
        """Read what a rule is given; return its second vector."""
        cdef int rule = self._rule
        cdef object rate
        given.events = given.mistakes = given.updates = 0
        given.ordinary = rule and self._weights is not None and self._weights.plain
        if not given.ordinary:
            return None
        given.clock = self.clock
        if rule == PERCEPTRON or rule >= CONSTANT:
            rate = self._learning_rate
            given.ordinary = type(rate) is float
            if not given.ordinary:
                return None
            given.rate = rate
        if rule == PERCEPTRON:
            given.margin, given.on_tie = self._update_margin, self._on_tie
        elif rule <= SQUARED or rule == SCW:
            given.C = self._C
        if rule == SCW:
            given.phi, given.forgetting = self._phi, 0.0
        elif rule == AROW:
            given.r, given.forgetting = self._r, self._forgetting
        if rule == AROW or rule == SCW:
            given.own = self.intercept_variance
            return self._variance
        if rule >= ADAGRAD:
            given.decay = self._decay if rule == RMS else -1.0
            given.own = self.intercept_squares
            return self._squares
        return None

    cdef int _keep(self, Given *given) except -1:
        """Count what was learned, and keep the intercept's own number."""
        cdef Accounting account = self.accounting
        if not given.events:
            return 0
        account.events += given.events
        self.clock += given.events
        if given.mistakes:
            account.mistakes += given.mistakes
        if given.updates:
            account.updates += given.updates
            if self._rule == AROW or self._rule == SCW:
                self.intercept_variance = given.own
            elif self._rule >= ADAGRAD:
                self.intercept_squares = given.own
        return 0

    cdef bint _learned(
        self, Event *event, double target, double w, Told *told, Given *given, Storage second
    ) except -1:
        """Learn an event; return whether it was ordinary, else nothing has changed.

        What changes but for the vectors, the intercept and the losses is left in `given`.
        """
        cdef Storage weights = self._weights
        cdef int rule = self._rule
        cdef double step = 0.0, beta = 0.0, forgetting = 0.0, rate, slope
        cdef double spread, constant = self._constant, own = 0.0, size, bound = 0.0, score, margin
        cdef double intercept = self.intercept
        cdef bint called = True
        if not 0.0 < w < INFINITY:
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
            if margin <= given.margin and (told.mistake or given.on_tie):
                step = given.rate * w * target
        elif rule <= SQUARED:
            if rule == UNCAPPED and w != 1.0:
                return False
            if margin <= 1.0:
                step = aggressive_step(
                    rule, given.C * w, 1.0 - margin, size * size + constant
                ) * target
        elif rule <= SCW:
            if margin <= 1.0 or rule == SCW:
                own = given.own
                spread = spread_of(second, event)
                if not isfinite(spread):
                    return False
                if rule == AROW:
                    slope = spread + own * constant + given.r / w
                    if not slope > 0.0:
                        return False
                    beta = 1.0 / slope
                    step = (1.0 - margin) * beta * target
                    forgetting = given.forgetting
                else:
                    step = soft_step(
                        margin, spread + own * constant, given.phi, given.C * w, &beta
                    ) * target
        elif rule <= SQRT:
            if margin <= 1.0:
                rate = given.rate
                if rule == SQRT:
                    if given.clock > MOST_EXACT:
                        return False
                    rate = rate / sqrt(given.clock + given.events + 1.0)
                step = rate * w * target
        else:
            rate = given.rate
            own = given.own
            if rule == ADAGRAD:
                called = margin <= 1.0
                if called:
                    own += w * w
                    if own > 0.0:
                        step = rate / sqrt(own) * w * target
                    intercept = intercept + step * constant
                    adaptive_results(weights, second, event, rate, target, w)
            else:
                slope = -target * w * residual(margin)
                called = slope != 0.0
                if called:
                    logistic_step(rate, given.decay, slope * constant, &intercept, &own)
                    logistic_results(weights, second, event, slope, rate, given.decay)
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

        given.events += 1
        given.mistakes += told.mistake
        if margin < 1.0:
            self.accounting._add_margin(margin)
        self.accounting._add_norm(size, constant)
        if not called:
            return True
        given.updates += 1
        if rule > SQRT:
            weights._set(event, 0)
            second._set(event, 1)
            given.own = own
        elif second is not None:
            weights.bound = bound
            move_by_confidence(weights, second, event, step, beta, forgetting)
            own = own - beta * (own * constant) * (own * constant)
            if not own > 0.0:
                own = 0.0
            if forgetting > 0.0:
                own = own / (1.0 - forgetting + forgetting * own)
            given.own = own
        else:
            weights.bound = bound
            weights._add_found(event, step)
        self.intercept = intercept
        return True


cdef double LARGEST = pure.LARGEST
cdef double MOST_EXACT = 2.0 ** 52
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

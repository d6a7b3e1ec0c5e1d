# Rules: an ordinary event of a binary learner in one call.
#
# The file is long: a class of Cython stands in one file, and what follows is one class.

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

    cdef void _add_margin(self, double margin) noexcept nogil:
        cdef double total = self.hinge_loss + (1.0 - margin)
        self.hinge_loss = total if total < LARGEST else LARGEST
        if margin < 0.0:
            total = self.perceptron_loss - margin
            self.perceptron_loss = total if total < LARGEST else LARGEST

    cdef void _add_norm(self, double norm, double constant) noexcept nogil:
        cdef double reach
        if norm + 1.0 > self.radius:
            reach = pair_norm(norm, constant)
            if reach > self.radius:
                self.radius = reach if reach < LARGEST else LARGEST


cdef struct Result:
    double score, loss
    bint positive, mistake, updated


cdef struct RuleState:
    int rule
    PyObject *account  # the caller holds it and these: another thread may set others
    PyObject *sums
    PyObject *squares
    PyObject *scales
    PyObject *sizes
    PyObject *rewards
    bint ordinary, on_tie, projects
    double margin, rate, C, r, phi, forgetting, decay, clock
    double own  # the intercept's own variance, squares or sum
    double l1, l2, log_shrink, pull  # of penalties
    double beta, start
    double[5] bet  # the intercept and its sums, of a rule with several
    Py_ssize_t record, last_update  # of the pocket
    Py_ssize_t most_names
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
    LINEAR
    LINEAR_CAPPED
    AVERAGED
    POCKET
    CONSTANT_SHRUNK
    SQRT_SHRUNK
    PEGASOS_SHRUNK
    CONSTANT_PULLED
    SQRT_PULLED
    PEGASOS_PULLED
    ADAGRAD_PENALISED
    PROXIMAL
    BETTING


cdef class BinaryCore:
    """A binary learner's ordinary event at once: see `hinged.kernel.pure.BinaryCore`."""

    cdef public Storage _weights
    cdef public Accounting accounting
    cdef public object clock, max_features, _learning_rate, record, last_update
    cdef public double intercept, _constant
    cdef public bint label_at_zero, _projects
    cdef public int _rule
    cdef public Storage _squares, _sums, _variance, _pocket, _shrink_marks, _pull_marks
    cdef public Storage _scales, _sizes, _rewards
    cdef public double intercept_sum, intercept_squares, intercept_variance, pocket_intercept
    cdef public double log_shrink, pull, _l1, _l2, _C, _r, _phi

    cdef list _vectors(self):
        """Return its vectors."""
        vectors = (
            *(self._weights, self._squares, self._sums, self._variance, self._pocket),
            *(self._shrink_marks, self._pull_marks, self._scales, self._sizes, self._rewards),
        )
        return [vector for vector in vectors if vector is not None]

    def __getstate__(self):
        self._rest()
        return {**self.__dict__, **{name: getattr(self, name) for name in pure.CORE}}

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

    def _label_at_once(self, x):
        """Return the label of an ordinary event of a rule that is known, else `None`."""
        cdef Event *event
        cdef double score
        if not PyDict_CheckExact(x) or not self._goes_at_once():
            return None
        try:
            event = gathered(x)
        except TypeError:
            return None
        try:
            score = self._served(event) if self._rule else score_at_once(self, event, x)
        finally:
            released(event)
        return self._is_true(score) if isfinite(score) else None

    cdef inline bint _is_known(self) noexcept:
        return self._rule and self._weights is not None and self._weights.plain

    cdef inline bint _goes_at_once(self) except -1:
        """Return whether an ordinary event may take one call, also of a `Quadratic`."""
        self._rest()
        return self._is_known() or is_quadratic(self)

    cdef inline int _rest(self) except -1:
        """Wait for the end of a run in another thread, after which its vectors may be others."""
        while self._weights is not None and self._weights._is_claimed():
            self._weights._wait()
        return 0

    def _wait_for_run(self):
        self._rest()

    cdef inline bint _is_true(self, double score) noexcept nogil:
        return score > 0.0 or (self.label_at_zero and score == 0.0)

    cdef double _served(self, Event *event) except? -1.0:
        """Return the score that predicts, of a rule that is known."""
        cdef Storage weights, second, third
        cdef RuleState state
        self._rest()
        weights = self._weights
        if self._rule < AVERAGED or self._rule >= PROXIMAL:
            return weights._dot(event) + self.intercept
        second = self._read_state(&state)
        if not state.ordinary:
            return NAN
        if state.rule == POCKET and self._is_pocketed(&state):
            return second._dot(event) + self.pocket_intercept
        third = self._third()
        return self._served_from_raw(
            self._raw(event, &state, weights, second, third), event, &state, second
        )

    cdef double _raw(
        self, Event *event, RuleState *state, Storage weights, Storage second, Storage third
    ) except? -1.0 nogil:
        """Return the score of the weights that learn; penalised weights become the results."""
        cdef int rule = state.rule
        cdef double total
        if rule < CONSTANT_SHRUNK or rule >= PROXIMAL:
            total = weights._dot_and_norm(event)
        elif rule < CONSTANT_PULLED:
            total = shrunk_results(weights, second, event, state.log_shrink)
        elif rule < ADAGRAD_PENALISED:
            total = pulled_results(
                weights, second, third, event, state.log_shrink, state.pull, state.l2 > 0.0
            )
        else:
            total = adaptive_now(
                weights,
                second,
                third,
                event,
                state.clock + state.events,
                state.rate,
                state.l1,
                state.l2,
            )
        return total + self.intercept

    cdef double _served_from_raw(
        self, double raw, Event *event, RuleState *state, Storage second
    ) except? -1.0 nogil:
        """Return the score that predicts, from that of the weights that learn."""
        cdef double events = state.clock + state.events
        if state.rule == AVERAGED:
            return raw - (second._dot(event) + state.own) / (events if events > 0.0 else 1.0)
        if state.rule == POCKET and self._is_pocketed(state):
            return second._dot(event) + self.pocket_intercept
        return raw

    cdef inline bint _is_pocketed(self, RuleState *state) noexcept nogil:
        return state.clock + state.events - state.last_update <= state.record

    def learn_one(self, x, y, w=1.0):
        """Learn from one labelled event: see `hinged.base.LinearClassifier.learn_one`."""
        cdef Result result
        if not self._learned_at_once(x, y, w, &result):
            self._learn(x, y, w)

    def predict_learn_one(self, x, y, w=1.0):
        """Predict, score, then learn: see `hinged.base.LinearClassifier.predict_learn_one`."""
        cdef Result result
        if not self._learned_at_once(x, y, w, &result):
            return outcome_of(Outcome, self._learn(x, y, w))
        return outcome_of(
            Outcome, (result.positive, result.score, result.mistake, result.updated, result.loss)
        )

    cdef bint _learned_at_once(self, x, y, w, Result *result) except -1:
        """Learn an ordinary event by a rule that is known, or change nothing: return whether."""
        cdef Event *event
        if not (
            (PyDict_CheckExact(x) or isinstance(x, Features))
            and (y is True or y is False)
            and type(w) is float
            and self._goes_at_once()
        ):
            return False
        try:
            event = gathered(x)
        except TypeError:
            return False
        try:
            return learn_at_once(self, event, x, 1.0 if y is True else -1.0, w, result)
        finally:
            released(event)

    cdef bint _learn_event(self, Event *event, double target, double w, Result *result) except -1:
        """Learn an event; return whether it was ordinary, else nothing has changed."""
        cdef RuleState state
        cdef Storage weights, second, sums, squares, scales, sizes, rewards
        cdef Accounting account
        self._rest()
        weights, account = self._weights, self.accounting  # held: a comparison of names may
        sums, squares = self._sums, self._squares  # replace any
        scales, sizes, rewards = self._scales, self._sizes, self._rewards
        second = self._read_state(&state)
        if not (
            state.ordinary
            and self._learned(event, target, w, result, &state, weights, second, self._third())
        ):
            return False
        self._write_state(&state)
        return True

    cdef Storage _read_state(self, RuleState *state):
        """Read the parameters and numbers of the rule; return its second vector."""
        cdef int rule = self._rule
        cdef object rate
        state.rule = rule
        state.account = <PyObject *>self.accounting
        state.events = state.mistakes = state.updates = 0
        state.ordinary = self._is_known()
        if not state.ordinary:
            return None
        state.clock = self.clock
        state.most_names = MOST_STORED
        if self.max_features is not None:
            state.most_names = min(self.max_features, MOST_STORED)
        if rule == PERCEPTRON or CONSTANT <= rule < BETTING:
            rate = self._learning_rate
            state.ordinary = type(rate) is float
            if not state.ordinary:
                return None
            state.rate = rate
        if rule >= PROXIMAL:
            state.ordinary = self.initial_weights is None
            state.start, state.bet[1] = self.initial_intercept, self.intercept_sum
            state.sums, state.squares = <PyObject *>self._sums, <PyObject *>self._squares
            state.scales, state.sizes = <PyObject *>self._scales, <PyObject *>self._sizes
            state.rewards = <PyObject *>self._rewards
            if rule == PROXIMAL:
                state.beta, state.l1, state.l2 = self._beta, self._l1, self._l2
                state.bet[2] = self.intercept_squares
            else:
                state.bet[2], state.bet[3] = self.intercept_scale, self.intercept_size
                state.bet[4] = self.intercept_reward
            return None
        if rule >= CONSTANT_SHRUNK:
            state.l1, state.l2 = self._l1, self._l2
            state.ordinary = rule == ADAGRAD_PENALISED or (state.l1 > 0.0) == (
                rule >= CONSTANT_PULLED
            )
            if rule == ADAGRAD_PENALISED:
                state.own = self.intercept_squares
                return self._squares
            state.projects = rule == PEGASOS_SHRUNK and self._projects
            if state.projects:
                state.own = self.intercept_squares
            state.log_shrink, state.pull = self.log_shrink, self.pull
            return self._shrink_marks
        if rule == AVERAGED:
            state.own = self.intercept_sum
            return self._sums
        if rule == POCKET:
            state.record, state.last_update = self.record, self.last_update
            return self._pocket
        if rule == PERCEPTRON:
            state.margin, state.on_tie = self._update_margin, self._on_tie
        elif rule <= SQUARED or rule == SCW:
            state.C = self._C
        if rule == SCW:
            state.phi, state.forgetting = self._phi, 0.0
        elif rule == AROW:
            state.r, state.forgetting = self._r, self._forgetting
        if rule == AROW or rule == SCW:
            state.own = self.intercept_variance
            return self._variance
        if ADAGRAD <= rule <= LOGISTIC_ADAGRAD:
            state.decay = self._decay if rule == RMS else -1.0
            state.own = self.intercept_squares
            return self._squares
        return None

    cdef Storage _third(self):
        """Return the marks of an absolute penalty."""
        return self._pull_marks if CONSTANT_PULLED <= self._rule < PROXIMAL else None

    cdef int _write_state(self, RuleState *state) except -1:
        """Count the learned events; write back the numbers that changed."""
        cdef Accounting account = <Accounting>state.account
        cdef int rule = state.rule
        if not state.events:
            return 0
        account.events += state.events
        self.clock += state.events
        if state.mistakes:
            account.mistakes += state.mistakes
        if CONSTANT_SHRUNK <= rule < ADAGRAD_PENALISED:
            self.log_shrink = state.log_shrink
            if rule >= CONSTANT_PULLED:
                self.pull = state.pull
            if state.projects:
                self.intercept_squares = state.own
        if state.updates:
            account.updates += state.updates
            if rule == AROW or rule == SCW:
                self.intercept_variance = state.own
            elif ADAGRAD <= rule <= LOGISTIC_ADAGRAD or rule == ADAGRAD_PENALISED:
                self.intercept_squares = state.own
            elif rule == AVERAGED:
                self.intercept_sum = state.own
            elif rule == POCKET:
                self.last_update = state.last_update
            elif rule >= PROXIMAL:
                self.intercept_sum = state.bet[1]
                if rule == PROXIMAL:
                    self.intercept_squares = state.bet[2]
                else:
                    self.intercept_scale, self.intercept_size = state.bet[2], state.bet[3]
                    self.intercept_reward = state.bet[4]
        return 0

    cdef bint _learned(
        self,
        Event *event,
        double target,
        double w,
        Result *result,
        RuleState *state,
        Storage weights,
        Storage second,
        Storage third,
    ) except -1 nogil:
        """Learn an event; return whether it was ordinary, else nothing has changed.

        What changes but for the vectors, the intercept and the losses is left in `state`.
        """
        cdef int rule = state.rule
        cdef double step = 0.0, beta = 0.0, forgetting = 0.0, rate, slope
        cdef double spread, constant = self._constant, own = 0.0, size, bound = 0.0, score, margin
        cdef double intercept = self.intercept, lag = 0.0, lag_bound = 0.0
        cdef bint called = True, by_confidence = rule == AROW or rule == SCW
        cdef bint by_step = not (ADAGRAD <= rule <= LOGISTIC_ADAGRAD or rule == ADAGRAD_PENALISED)
        if not 0.0 < w < INFINITY:
            return False
        if weights.count + event.count > state.most_names:
            return False
        score = self._raw(event, state, weights, second, third)
        size = norm_once(event)
        if not (isfinite(score) and size < INFINITY):
            return False
        margin = target * score
        result.score = self._served_from_raw(score, event, state, second)
        if not isfinite(result.score):
            return False
        result.positive = self._is_true(result.score)
        result.mistake = result.positive != (target > 0.0)
        result.loss = 1.0 - margin if margin < 1.0 else 0.0
        if CONSTANT_SHRUNK <= rule < ADAGRAD_PENALISED:
            return self._learned_penalised(
                event, target, w, margin, result, state, weights, second, third
            )
        if rule >= PROXIMAL:
            return self._learned_by_sums(event, target, w, margin, result, state, weights)

        if rule == PERCEPTRON:
            if margin <= state.margin and (result.mistake or state.on_tie):
                step = state.rate * w * target
        elif rule <= SQUARED:
            if rule == UNCAPPED and w != 1.0:
                return False
            if margin <= 1.0:
                step = aggressive_step(
                    rule, state.C * w, 1.0 - margin, size * size + constant
                ) * target
        elif rule <= SCW:
            if margin <= 1.0 or rule == SCW:
                own = state.own
                spread = spread_of(second, event)
                if not isfinite(spread):
                    return False
                if rule == AROW:
                    slope = spread + own * constant + state.r / w
                    if not slope > 0.0:
                        return False
                    beta = 1.0 / slope
                    step = (1.0 - margin) * beta * target
                    forgetting = state.forgetting
                else:
                    step = soft_step(
                        margin, spread + own * constant, state.phi, state.C * w, &beta
                    ) * target
        elif rule <= SQRT:
            if margin <= 1.0:
                rate = state.rate
                if rule == SQRT:
                    if state.clock > MOST_EXACT:
                        return False
                    rate = rate / sqrt(state.clock + state.events + 1.0)
                step = rate * w * target
        elif rule == LINEAR or rule == LINEAR_CAPPED:
            step = state.rate * w
            if rule == LINEAR_CAPPED:
                step = min(step, 1.0 / (size * size + constant + 1.0 - constant))
            step = step * (1.0 - margin) * target
        elif rule == AVERAGED or rule == POCKET:
            if margin <= 0.0:
                step = state.rate * w * target
                lag = (state.clock + state.events) * step
                if state.clock > MOST_EXACT or step == 0.0 or (
                    rule == POCKET
                    and state.clock + state.events - state.last_update > state.record
                ):
                    return False
        else:
            rate = state.rate
            own = state.own
            if rule == ADAGRAD or rule == ADAGRAD_PENALISED:
                called = margin <= 1.0
                if called:
                    own += w * w
                    if own > 0.0:
                        step = rate / sqrt(own) * w * target
                    intercept = intercept + step * constant
                    if rule == ADAGRAD:
                        adaptive_results(weights, second, event, rate, target, w)
                    else:
                        penalised_results(
                            second, event, rate, target, w, state.l1, state.l2
                        )
            else:
                slope = -target * w * residual(margin)
                called = slope != 0.0
                if called:
                    logistic_step(rate, state.decay, slope * constant, &intercept, &own)
                    logistic_results(weights, second, event, slope, rate, state.decay)
            if called and not (isfinite(intercept) and isfinite(own) and results_finite(event, 2)):
                return False

        if by_step:
            called = step != 0.0
        if by_step and called:
            intercept = intercept + step * (own * constant if by_confidence else constant)
            bound = weights.bound + fabs(step) * size
            if not (bound < SAFE_BOUND and isfinite(intercept)):
                return False
            if rule == AVERAGED:
                lag_bound = second.bound + fabs(lag) * size
                if not lag_bound < SAFE_BOUND:
                    return False
                open_all(event, weights, second)
            else:
                weights._open(event)
        result.updated = called

        self._count(result, state, margin, size)
        if not called:
            return True
        state.updates += 1
        if not by_step:
            weights._set(event, 0)
            join(weights, second)
            second._set(event, 1)
            state.own = own
            if rule == ADAGRAD_PENALISED:
                join(weights, third)
                third._open(event)
                marked(third, event, state.clock + state.events)
        elif by_confidence:
            weights.bound = bound
            move_by_confidence(weights, second, event, step, beta, forgetting)
            own = own - beta * (own * constant) * (own * constant)
            if not own > 0.0:
                own = 0.0
            if forgetting > 0.0:
                own = own / (1.0 - forgetting + forgetting * own)
            state.own = own
        else:
            weights.bound = bound
            weights._add_found(event, step)
            if rule == AVERAGED:
                second.bound = lag_bound
                second._add_found(event, lag)
                if constant != 0.0:
                    state.own = saturated(state.own + saturated(lag))
            elif rule == POCKET:
                state.last_update = <Py_ssize_t>(state.clock + state.events)
        self.intercept = intercept
        return True

    cdef bint _learned_by_sums(
        self,
        Event *event,
        double target,
        double w,
        double margin,
        Result *result,
        RuleState *state,
        Storage weights,
    ) except -1 nogil:
        """Learn an event by a rule that keeps several sums of each weight."""
        cdef double slope = target * w * residual(margin), constant = self._constant
        cdef double[5] bet = state.bet
        cdef Proximal own, all_
        cdef bint fits
        cdef Py_ssize_t i
        result.updated = slope != 0.0
        if result.updated:
            bet[0] = self.intercept
            if state.rule == PROXIMAL:
                own = Proximal(state.rate, state.beta, 0.0, 0.0)
                all_ = Proximal(state.rate, state.beta, state.l1, state.l2)
                proximal_step(-slope * constant, state.start, &own, &bet[0], &bet[1], &bet[2])
                proximal_results(
                    weights, <Storage>state.sums, <Storage>state.squares, event, -slope, &all_
                )
            else:
                next_bet(slope * constant, w * constant, state.start, bet)
                betting_results(
                    weights,
                    <Storage>state.sums,
                    <Storage>state.scales,
                    <Storage>state.sizes,
                    <Storage>state.rewards,
                    event,
                    slope,
                    w,
                )
            for i in range(5 if state.rule == BETTING else 3):
                if not isfinite(bet[i]):
                    return False
            if state.rule == PROXIMAL:
                fits = stored(event, weights, <Storage>state.sums, <Storage>state.squares)
            else:
                fits = stored(
                    event,
                    weights,
                    <Storage>state.sums,
                    <Storage>state.scales,
                    <Storage>state.sizes,
                    <Storage>state.rewards,
                )
            if not fits:
                return False
            self.intercept, state.bet = bet[0], bet
            state.updates += 1
        self._count(result, state, margin, event.norm)
        return True

    cdef int _count(self, Result *result, RuleState *state, double margin, double size) except -1 nogil:
        """Count an event that is about to be learned."""
        state.events += 1
        state.mistakes += result.mistake
        if margin < 1.0:
            (<Accounting>state.account)._add_margin(margin)
        (<Accounting>state.account)._add_norm(size, self._constant)
        return 0

    cdef bint _learned_penalised(
        self,
        Event *event,
        double target,
        double w,
        double margin,
        Result *result,
        RuleState *state,
        Storage weights,
        Storage marks,
        Storage pull_marks,
    ) except -1 nogil:
        """Learn an event by equal steps with penalties; the results are the weights before it."""
        cdef int rule = state.rule
        cdef double clock = state.clock + state.events + 1.0, l2 = state.l2, pull, eta, lost
        cdef double shrink, pulls = state.pull, log_shrink, mark, step, move, bound = 0.0
        cdef double intercept = self.intercept, squares = state.own, ball = 0.0
        cdef bint hit = margin <= 1.0, projects = state.projects
        cdef Py_ssize_t i
        if clock > MOST_EXACT:
            return False
        if rule == PEGASOS_SHRUNK or rule == PEGASOS_PULLED:
            eta = 1.0 / (l2 * clock)
        elif rule == SQRT_SHRUNK or rule == SQRT_PULLED:
            eta = state.rate / sqrt(clock)
        else:
            eta = state.rate
        lost, pull = eta * l2, eta * state.l1
        shrink = 1.0 - lost if lost < 1.0 else 0.0
        if not (eta < INFINITY and shrink > 0.0):
            return False
        mark = log_shrink = state.log_shrink + log(shrink)
        if pull > 0.0 or pulls > 0.0:
            pulls = min(shrink * pulls + pull, LARGEST)
        if projects:
            intercept = intercept * shrink
            squares = squares * (shrink * shrink)
        step = eta * w * target
        if hit:
            move = step * self._constant
            if projects:
                squares += move * (2.0 * intercept + move)
            intercept = intercept + move
            if projects:
                for i in range(event.count):
                    move = step * event.values[i]
                    squares += move * (2.0 * shrink * event.results[i] + move)
                if not squares > 0.0:
                    squares = 0.0
                if not squares < INFINITY:
                    return False
                if squares * l2 > 1.0:
                    ball = 1.0 / sqrt(squares) / sqrt(l2)
                    log_shrink = log_shrink + log(ball)
            bound = weights.bound + fabs(step) * event.norm
            if not (bound < SAFE_BOUND and isfinite(intercept + squares) and ball < INFINITY):
                return False
            if rule < CONSTANT_PULLED:
                open_all(event, weights, marks)
            elif l2 > 0.0:
                open_all(event, weights, pull_marks, marks)
            else:
                open_all(event, weights, pull_marks)
        result.updated = hit
        self._count(result, state, margin, event.norm)
        state.log_shrink, state.pull = log_shrink, pulls
        if projects:
            state.own = squares
        if hit:
            state.updates += 1
            weights.bound = bound
            if rule < CONSTANT_PULLED:
                move_shrunk(weights, marks, event, shrink, step, mark)
            else:
                move_pulled(weights, event, shrink, step, pull)
                marked(pull_marks, event, pulls)
                if l2 > 0.0:
                    marked(marks, event, mark)
            if ball > 0.0:
                intercept = intercept * ball
                state.own = 1.0 / l2
        self.intercept = intercept
        return True


cdef inline double saturated(double value) noexcept nogil:
    return -LARGEST if value < -LARGEST else LARGEST if value > LARGEST else value


cdef double LARGEST = pure.LARGEST
cdef object Outcome = pure.Outcome, outcome_of = pure.outcome_of
cdef double MOST_EXACT = 2.0 ** 52


cdef double residual(double margin) noexcept nogil:
    cdef double odds
    if margin < 0.0:
        return 1.0 / (1.0 + exp(margin))
    odds = exp(-margin)
    return odds / (1.0 + odds)


cdef double aggressive_step(int rule, double cap, double loss, double norm2) noexcept nogil:
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


cdef double soft_step(double margin, double v, double phi, double cap, double *beta) noexcept nogil:
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

# Pools: experts with trust and temperatures.

cdef class Scaling:
    """The arithmetic of a temperature: see `hinged.kernel.pure.Scaling`."""

    cdef public double log_scale, curvature, scale

    def __init__(self):
        self.log_scale = 0.0
        self.curvature = 0.0
        self.scale = 1.0

    def __reduce__(self):
        return pure.revived_scaling, (type(self), self.log_scale, self.curvature, self.scale)

    def log_odds(self, double score):
        return self._log_odds(score)

    cdef inline double _log_odds(self, double score) noexcept:
        cdef double z = self.scale * score
        return LIMIT if z > LIMIT else -LIMIT if z < -LIMIT else z

    def learn(self, double z, bint positive, double w=1.0):
        self._learn(z, positive, w)

    cdef void _learn(self, double z, bint positive, double w) noexcept:
        cdef double odds = exp(-fabs(z))
        cdef double low = odds / (1.0 + odds)
        cdef double high = 1.0 - low
        cdef double wrong = low if positive == (z > 0.0) else high
        self._move(-wrong * z if positive else wrong * z, low * high * z * z, w)

    cpdef dict log_shares(self, dict scores):
        cdef Scored one = Scored()
        cdef Py_ssize_t i
        one._begin(scores, 1)
        for i, value in enumerate(scores.values()):
            one.raw[i] = value
        self._share(one.raw, one.raw, one.count)
        return one._dict()

    cdef void _share(self, const double *scores, double *shares, Py_ssize_t count) noexcept:
        cdef double top = -INFINITY, z
        cdef Py_ssize_t i
        for i in range(count):
            if scores[i] > top:
                top = scores[i]
        for i in range(count):
            z = self.scale * (scores[i] - top)
            shares[i] = z if z > -LIMIT else -LIMIT

    def learn_class(self, dict z, label, double w=1.0):
        cdef Scored one = Scored()
        cdef Py_ssize_t i, at = -1
        if label not in z:
            return
        one._begin(z, 1)
        for i, (name, value) in enumerate(z.items()):
            one.raw[i] = value
            if at < 0 and (name is label or name == label):
                at = i
        self._learn_class(one.raw, one.count, at, w)

    cdef void _learn_class(
        self, const double *z, Py_ssize_t count, Py_ssize_t at, double w
    ) noexcept:
        cdef double total = 0.0, mean = 0.0, square = 0.0, size, odds
        cdef Py_ssize_t i
        for i in range(count):
            size = z[i]
            odds = exp(size)
            total += odds
            mean += odds * size
            square += odds * size * size
        mean /= total
        size = square / total - mean * mean
        self._move(mean - z[at], size if size > 0.0 else 0.0, w)

    cdef void _move(self, double gradient, double curvature, double w) noexcept:
        cdef double step, theta
        if w > MOST_WEIGHT:
            w = MOST_WEIGHT
        self.curvature = KEPT * self.curvature + w * curvature
        step = w * gradient / (self.curvature + LEAST_CURVATURE)
        if step > LONGEST_STEP:
            step = LONGEST_STEP
        elif step < -LONGEST_STEP:
            step = -LONGEST_STEP
        theta = self.log_scale - step
        if theta > MOST_LOG_SCALE:
            theta = MOST_LOG_SCALE
        elif theta < LEAST_LOG_SCALE:
            theta = LEAST_LOG_SCALE
        self.log_scale = theta
        self.scale = exp(theta)


cdef class Mixing:
    """The arithmetic of a base rate: see `hinged.kernel.pure.Mixing`."""

    cdef public double positives, negatives, trust

    def __init__(self, double positives=0.5, double negatives=0.5, double trust=0.5):
        self.positives = positives
        self.negatives = negatives
        self.trust = trust

    def __reduce__(self):
        return pure.revived_mixing, (type(self), self.positives, self.negatives, self.trust)

    def mixed(self, double z):
        return self._mixed(z)

    cdef double _mixed(self, double z) noexcept:
        cdef double known = self.positives + self.negatives, odds = exp(-z)
        cdef double rest = (1.0 - self.trust) / (1.0 + odds)
        cdef double true = rest + self.trust * (self.positives / known)
        cdef double false = rest * odds + self.trust * (self.negatives / known)
        cdef double score = log(true / false), size = fabs(z)
        if score * z > 0.0:
            return LIMIT if score > LIMIT else -LIMIT if score < -LIMIT else score
        return copysign(LEAST_ODDS if LEAST_ODDS < size else size, z)

    def learn(self, double z, bint positive, double w=1.0):
        self._learn(z, positive, w)

    cdef void _learn(self, double z, bint positive, double w) noexcept:
        cdef double own, rate, evidence, odds, trust
        if w > MOST_WEIGHT:
            w = MOST_WEIGHT
        own = self.positives if positive else self.negatives
        rate = own / (self.positives + self.negatives)
        evidence = w * log(rate * (1.0 + exp(-z if positive else z)))
        if evidence > MOST_EVIDENCE:
            evidence = MOST_EVIDENCE
        elif evidence < -MOST_EVIDENCE:
            evidence = -MOST_EVIDENCE
        odds = exp(evidence)
        trust = self.trust * odds / (1.0 - self.trust + self.trust * odds)
        self.trust = (1.0 - SPREAD) * trust + 0.5 * SPREAD
        if positive:
            self.positives += w
        else:
            self.negatives += w


def pooled(list scalings, list trust, list scores):
    """Return the log-odds of each expert, and last those of the pool."""
    cdef double pool = 0.0, z
    cdef Py_ssize_t i, count = len(trust)
    cdef Scaling scaling
    cdef list found = []
    if len(scores) != count or len(scalings) != count + 1:
        raise ValueError("a score and a scaling for each expert")
    for i in range(count):
        scaling = scalings[i]
        z = scaling._log_odds(scores[i])
        pool += <double>trust[i] * z
        found.append(z)
    scaling = scalings[count]
    found.append(scaling._log_odds(pool))
    return found


def class_shares(list scalings, list trust, list scores, labels):
    """Return the scores of each expert as log-shares, and last those of the pool."""
    cdef Scaling scaling
    cdef list shares = []
    for scaling, score in zip(scalings, scores):  # the last one is the pool's
        shares.append(scaling.log_shares(score))
    scaling = scalings[len(shares)]
    shares.append(scaling.log_shares(mixed(trust, shares, labels)))
    return shares


cpdef best(dict scores):
    """Return the first key of the highest value, `None` if there is none."""
    cdef double top = 0.0, size
    cdef object found = None
    cdef bint first = True
    for label, value in scores.items():
        size = value
        if first or size > top:
            top, found, first = size, label, False
    return found


cpdef dict mixed(list trust, list shares, labels):
    """Return the log-shares of each class, weighed by the trust in those who tell them."""
    cdef dict pool = dict.fromkeys(labels, 0.0), share
    cdef double v
    for weight, share in zip(trust, shares, strict=True):
        v = weight
        for label, value in share.items():
            pool[label] = <double>pool[label] + v * <double>value
    return pool


cpdef list judged(list trust, list wrong, double loss, double share):
    """Return the trust after one event."""
    cdef double factor = exp(-loss), total, even
    cdef Py_ssize_t i, count = len(trust)
    cdef list left = []
    if len(wrong) != count:
        raise ValueError("a verdict for each trust")
    for i in range(count):
        left.append(<double>trust[i] * factor if wrong[i] else trust[i])
    total = fsum(left)
    if total <= 0.0:
        return trust
    even = share / count
    return [(1.0 - share) * <double>v / total + even for v in left]


cdef double SPREAD = pure.SPREAD, LEAST_ODDS = pure.LEAST_ODDS
cdef double MOST_EVIDENCE = pure.MOST_EVIDENCE
cdef double LIMIT = pure.LIMIT, KEPT = pure.KEPT, MOST_WEIGHT = pure.MOST_WEIGHT
cdef double LEAST_CURVATURE = pure.LEAST_CURVATURE, LONGEST_STEP = pure.LONGEST_STEP
cdef double MOST_LOG_SCALE = pure.MOST_LOG_SCALE, LEAST_LOG_SCALE = pure.LEAST_LOG_SCALE


def scores_of(list experts, x):
    """Return the finite score of each learner."""
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return pure.scores_of(experts, x)
    try:
        return [finite_score(expert, event, x) for expert in experts]
    finally:
        released(event)


def pool_score(list experts, list scalings, Mixing base_rate, list trust, x):
    """Return the log-odds of true of a pool."""
    cdef Event *event
    cdef Scaling scaling
    cdef double pool = 0.0
    cdef Py_ssize_t i, count = len(experts)
    if len(trust) != count or len(scalings) != count + 1:
        raise ValueError("a trust and a scaling for each expert")
    try:
        event = gathered(x)
    except TypeError:
        return pure.pool_score(experts, scalings, base_rate, trust, x)
    try:
        for i in range(count):
            scaling = scalings[i]
            pool += <double>trust[i] * scaling._log_odds(finite_score(experts[i], event, x))
    finally:
        released(event)
    scaling = scalings[count]
    return base_rate._mixed(scaling._log_odds(pool))


cdef double finite_score(expert, Event *event, x) except? -1.0:
    """Return the finite score of a learner."""
    cdef double score = score_at_once(expert, event, x)
    return score if isfinite(score) else expert.score_one(x)


cdef double score_at_once(expert, Event *event, x) except? -1.0:
    """Return the score of a learner of a known rule, also of a `Quadratic` of one; else NaN."""
    cdef Event *squares
    if not isinstance(expert, BinaryCore):
        return NAN
    if (<BinaryCore>expert)._is_known():
        return (<BinaryCore>expert)._served(event)
    if not is_quadratic(expert):
        return NAN
    squares = gathered_squares(event, x)
    try:
        return score_at_once(expert.lifted, squares, None)
    finally:
        released(squares)


cdef bint learn_at_once(
    expert, Event *event, x, double target, double w, Result *result
) except -1:
    """Let a learner of a known rule, also a `Quadratic` of one, learn an ordinary event.

    Return whether it did; else nothing has changed.
    """
    cdef Event *squares
    if not isinstance(expert, BinaryCore):
        return False
    if not is_quadratic(expert):
        return (<BinaryCore>expert)._learn_event(event, target, w, result)
    squares = gathered_squares(event, x)
    try:
        return learn_at_once(expert.lifted, squares, None, target, w, result)
    finally:
        released(squares)


def pool_event(
    list experts,
    list scalings,
    Mixing base_rate,
    list trust,
    x,
    bint positive,
    double w,
    double loss,
    double share,
    Accounting account,
    double constant,
):
    """Let a pool learn an event; return its outcome, as `_learn` does, and the new trust."""
    cdef Event *event
    cdef Result result
    cdef Scaling scaling
    cdef double pool = 0.0, target = 1.0 if positive else -1.0, z, score, margin, size
    cdef bint updated = False, mistake
    cdef Py_ssize_t i, count = len(experts)
    cdef list log_odds = [], wrong = []
    if len(trust) != count or len(scalings) != count + 1:
        raise ValueError("a trust and a scaling for each expert")
    event = gathered(x)
    try:
        for i in range(count):
            expert = experts[i]
            if not learn_at_once(expert, event, x, target, w, &result):
                fields = pure.taught(expert, x, positive, w, account)
                result.positive, result.score, result.updated = fields[0], fields[1], fields[3]
            updated = updated or result.updated
            wrong.append(result.positive != positive)
            scaling = scalings[i]
            z = scaling._log_odds(result.score)
            log_odds.append(z)
            pool += <double>trust[i] * z
        size = norm_once(event)
    finally:
        released(event)
    scaling = scalings[count]
    z = scaling._log_odds(pool)
    log_odds.append(z)
    score = base_rate._mixed(z)
    margin = target * score
    if margin < 1.0:
        account._add_margin(margin)
    mistake = (score > 0.0) != positive
    account.mistakes += mistake
    account._add_norm(size, constant)
    account.updates += updated
    for i in range(count + 1):
        scaling = scalings[i]
        scaling._learn(log_odds[i], positive, w)
    base_rate._learn(z, positive, w)
    result.loss = 1.0 - margin if margin < 1.0 else 0.0
    fields = (score > 0.0, score, mistake, updated, result.loss)
    return fields, judged(trust, wrong, loss, share)


def teach(dict experts, x, y, double w, account):
    """Let the learner of each label learn whether `y` is that one; return whether any moved.

    What they leave out is counted in `account`.
    """
    cdef Event *event = gathered(x)
    cdef Result result
    cdef bint moved = False
    try:
        for label, expert in experts.items():
            right = bool(label == y)
            if learn_at_once(expert, event, x, 1.0 if right else -1.0, w, &result):
                moved = moved or result.updated
            else:
                moved = pure.taught(expert, x, right, w, account).updated or moved
        return moved
    finally:
        released(event)

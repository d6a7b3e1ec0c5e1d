# Rules of learners of several classes: the update of an ordinary event. Each is described by the
# method `_update` of its learner.

cdef bint moved_classes(
    int rule,
    learner,
    Event *event,
    Scored found,
    ClassWeights own,
    ClassWeights rival,
    double margin,
    double norm,
    double w,
) except -1:
    """Move the classes of an event; return whether they moved, or change nothing."""
    if learner.max_features is not None or <double>learner.clock > MOST_EXACT:
        return False
    if rule == CLASS_MEANS:
        return means_moved(own, event, w)
    if rule == LOGISTIC_CLASSES:
        return moved_by_shares(learner, event, found, own, w)
    if rule == AROW_CLASSES:
        return moved_by_confidence(learner, event, own, rival, margin, w)
    if rule == AGGRESSIVE_CLASSES:
        mode = learner.mode
        return moved_by_step(
            learner,
            event,
            own,
            rival,
            aggressive_step(
                CAPPED if mode == "I" else SQUARED if mode == "II" else UNCAPPED,
                learner._C * w,
                1.0 - margin,
                2.0 * (norm * norm + <double>learner._constant),
            ),
            norm,
            False,
        )
    if rule == PERCEPTRON_CLASSES or rule == AVERAGED_CLASSES:
        rate = learner._learning_rate
        return type(rate) is float and moved_by_step(
            learner, event, own, rival, <double>rate * w, norm, rule == AVERAGED_CLASSES
        )
    return False


cdef bint moved_by_step(
    learner,
    Event *event,
    ClassWeights own,
    ClassWeights rival,
    double step,
    double norm,
    bint averages,
) except -1:
    cdef double constant = learner._constant, events = learner.clock - 1
    cdef double up = own.intercept + step * constant, down = rival.intercept - step * constant
    cdef double lag = events * step, move
    if step == 0.0 or not (isfinite(up) and isfinite(down)):
        return False
    if not (fits_at_once(own.weights, step, norm) and fits_at_once(rival.weights, step, norm)):
        return False
    if averages and not (
        fits_at_once(own.auxiliary, lag, norm) and fits_at_once(rival.auxiliary, lag, norm)
    ):
        return False
    own.weights._move_found(event, step, norm)
    rival.weights._move_found(event, -step, norm)
    if averages:
        join(own.weights, own.auxiliary)
        own.auxiliary._move_found(event, lag, norm)
        join(rival.weights, rival.auxiliary)
        rival.auxiliary._move_found(event, events * -step, norm)
        move = saturated(events * (up - own.intercept))
        own.auxiliary_intercept = saturated(own.auxiliary_intercept + move)
        move = saturated(events * (down - rival.intercept))
        rival.auxiliary_intercept = saturated(rival.auxiliary_intercept + move)
    own.intercept, rival.intercept = up, down
    return True


cdef inline bint fits_at_once(Storage vector, double step, double norm) noexcept:
    return vector.bound + fabs(step) * norm < SAFE_BOUND


cdef bint moved_by_confidence(
    learner, Event *event, ClassWeights own, ClassWeights rival, double margin, double w
) except -1:
    cdef double constant = learner._constant, spread, total, beta, step, up, down
    cdef double own_constant = own.auxiliary_intercept * constant
    cdef double rival_constant = rival.auxiliary_intercept * constant
    join(own.weights, own.auxiliary)
    join(rival.weights, rival.auxiliary)
    spread = spread_of(own.auxiliary, event) + spread_of(rival.auxiliary, event)
    total = spread + own_constant + rival_constant + <double>learner._r / w
    if not total > 0.0:
        return False
    beta = 1.0 / total
    step = (1.0 - margin) * beta
    up = own.intercept + step * own_constant
    down = rival.intercept - step * rival_constant
    if step == 0.0 or not (isfinite(spread + up) and isfinite(down)):
        return False
    if not both_by_confidence(
        event, own.weights, own.auxiliary, rival.weights, rival.auxiliary, step, -step, beta
    ):
        return False
    own.intercept, rival.intercept = up, down
    up = own.auxiliary_intercept - beta * own_constant * own_constant
    down = rival.auxiliary_intercept - beta * rival_constant * rival_constant
    own.auxiliary_intercept = up if up > 0.0 else 0.0
    rival.auxiliary_intercept = down if down > 0.0 else 0.0
    return True


cdef bint moved_by_shares(
    learner, Event *event, Scored found, ClassWeights own, double w
) except -1:
    cdef ClassWeights part
    cdef double least = learner._least, share
    cdef list moving = [], slopes = []
    rate = learner._learning_rate
    if type(rate) is not float:
        return False
    for part, value in zip(found.parts.values(), softmax(found._dict()).values()):
        share = value
        if part is own or not share < least:
            moving.append(part)
            slopes.append(w * (share - (part is own)))
    return moved_by_slopes(moving, slopes, event, rate, learner._constant)

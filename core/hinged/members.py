"""State of learners that are made of other learners, flattened by prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hinged import state
from hinged.accounting import Accounting
from hinged.base import LinearClassifier
from hinged.binary import ACCOUNT, BinaryLinearClassifier, restored_accounting
from hinged.errors import InvalidParameter, InvalidState, shown
from hinged.kernel.pure import counted
from hinged.state import ScalarType

__all__ = [
    "checked",
    "counted",
    "flat_state",
    "pool_of",
    "restored",
    "restored_account",
]

Member = TypeVar("Member", bound=LinearClassifier)


def checked(model: object) -> BinaryLinearClassifier:
    """Return a binary learner of this package, or raise `InvalidParameter`."""
    if isinstance(model, BinaryLinearClassifier):
        return model
    raise InvalidParameter(f"must be a binary learner of hinged, not {shown(model)}")


def flat_state(
    kind: str,
    scalars: Mapping[str, Any],
    account: Accounting,
    members: Sequence[LinearClassifier],
) -> dict[str, Any]:
    """Return one state for a learner and its members, those of member i named `"i/..."`.

    The type of a member that has members itself is `[type, members]`.
    """
    flat = {**scalars, **{name: getattr(account, name) for name in ACCOUNT}}
    vectors: dict[str, Any] = {}
    types: list[Any] = []
    for number, member in enumerate(members):
        one = member.get_state()
        types.append([one["type"], one["members"]] if "members" in one else one["type"])
        flat |= {f"{number}/{name}": value for name, value in one["scalars"].items()}
        vectors |= {f"{number}/{name}": value for name, value in one["vectors"].items()}
    return {
        "version": state.STATE_VERSION,
        "type": kind,
        "members": types,
        "scalars": flat,
        "vectors": vectors,
    }


def pool_of(types: object, own: list[Member], defaults: Sequence[list[Member]]) -> list[Member]:
    """Return the models of saved members: a default pool may have been another one then.

    Parameters
    ----------
    types
        The types of the members, as a flat state has them.
    own
        The models of the learner that takes the state.
    defaults
        The default pools, those of before too: if `own` is one, the members may be of any.

    """
    if not isinstance(types, (list, tuple)) or _types(own) not in map(_types, defaults):
        return own
    return next((pool for pool in [own, *defaults] if _types(pool) == list(types)), own)


def _types(models: Sequence[LinearClassifier]) -> list[str]:
    return [type(model).__name__ for model in models]


def restored(saved: Mapping[str, Any], fresh: Sequence[Member]) -> list[Member]:
    """Return the members `fresh`, each with its part of a flat state; unusable after an error.

    They have the classes of the whole, if it has any.
    """
    types = saved.get("members")
    if not isinstance(types, (list, tuple)) or len(types) != len(fresh):
        raise InvalidState(f"members must be a list of {len(fresh)} types, not {shown(types)}")
    _refuse_strangers(saved, len(fresh))
    scalars, vectors = _by_member(saved.get("scalars")), _by_member(saved.get("vectors"))
    for number, member in enumerate(fresh):
        kind = types[number]
        own, inner = kind if isinstance(kind, (list, tuple)) and len(kind) == 2 else (kind, None)
        member.set_state(
            {
                "version": state.STATE_VERSION,
                "type": own,
                "members": inner,
                "classes": saved.get("classes"),
                "scalars": scalars.get(str(number), {}),
                "vectors": vectors.get(str(number), {}),
            }
        )
    return list(fresh)


def restored_account(
    saved: Mapping[str, Any], kinds: Mapping[str, ScalarType]
) -> tuple[dict[str, Any], Accounting]:
    """Return the learner's own scalars of a flat state, and its accounting."""
    given = saved.get("scalars")
    own = (
        {name: value for name, value in given.items() if "/" not in str(name)}
        if isinstance(given, Mapping)
        else given
    )
    given = state.part({"scalars": own}, "scalars", {**kinds, **ACCOUNT})
    scalars = {name: state.scalar(name, kind, given[name]) for name, kind in kinds.items()}
    return scalars, restored_accounting(given)


def _refuse_strangers(saved: Mapping[str, Any], members: int) -> None:
    prefixes = {str(number) for number in range(members)}
    for part in ("scalars", "vectors"):
        for name in saved.get(part) or ():
            prefix, slash, _ = str(name).partition("/")
            if prefix not in prefixes and (slash or part == "vectors"):
                raise InvalidState(f"the {part} have {shown(name)}, which belongs to no member")


def _by_member(part: object) -> dict[str, dict[str, Any]]:
    """Return the part of a flat state of each member, by the text of its number."""
    if not isinstance(part, Mapping):
        raise InvalidState(f"must be a mapping, not {type(part).__name__}")
    members: dict[str, dict[str, Any]] = {}
    for name, value in part.items():
        number, slash, own = str(name).partition("/")
        if slash:
            members.setdefault(number, {})[own] = value
    return members

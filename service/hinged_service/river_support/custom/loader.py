"""The operator's code: found and run once, for the models that it declares."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from hinged_service.errors import StartupError
from hinged_service.river_support.custom.model import CustomModel

__all__ = ["explained", "load", "sources"]

_FUNCTION = "models"
_OTHERS = (str(Path(__file__).parents[1]), *map(sysconfig.get_path, ("stdlib", "purelib")))


def sources(setting: str | None) -> list[str]:
    """Return the single files and names of the setting `models`."""
    return [part.strip() for part in (setting or "").split(",") if part.strip()]


def load(listed: Sequence[str]) -> dict[str, CustomModel]:
    """Return the models that the operator's code declares, by name.

    Parameters
    ----------
    listed
        `file.py`, whose function `models` is called, or `module:function`.

    Raises
    ------
    StartupError
        The code is not there, fails, or declares something else than models.

    """
    found: dict[str, CustomModel] = {}
    for source in listed:
        declared = _declared(source)
        if not isinstance(declared, dict) or not all(
            isinstance(name, str) and 1 <= len(name) <= 128 and isinstance(model, CustomModel)
            for name, model in declared.items()
        ):
            raise StartupError(
                f"{source}: the function must return a dict of names, of 1 to 128 characters, "
                "and hinged_service.custom.CustomModel."
            )
        for name, model in declared.items():
            if name in found:
                raise StartupError(f"{source}: there are two custom models {name!r}. Rename one.")
            found[name] = model
    return found


def _declared(source: str) -> object:
    path, function = (Path(source), _FUNCTION) if source.endswith(".py") else (None, "")
    try:
        if path is not None:
            module = _run(path.absolute())
        else:
            name, _, function = source.partition(":")
            module = _imported(name, source, function)
    except StartupError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - all that code may raise
        raise StartupError(f"{source} cannot be loaded: {explained(error)}") from None
    call = getattr(module, function, None)
    if not callable(call):
        raise StartupError(
            f"{source} has no function {function!r} that returns the models by name."
        )
    try:
        found: object = call()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        raise StartupError(f"{source}: {function}() fails: {explained(error)}") from None
    return found


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise StartupError(f"There is no file {path} (--models, HINGED_MODELS).")
    name = f"hinged_models.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StartupError(f"{path} is not a Python file (--models, HINGED_MODELS).")
    _let_import_from(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _imported(name: str, source: str, function: str) -> ModuleType:
    if not (name and function):
        raise StartupError(
            f"{source!r} is neither a file that ends with .py nor module:function "
            "(--models, HINGED_MODELS)."
        )
    _let_import_from(Path.cwd())
    return importlib.import_module(name)


def _let_import_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def explained(error: BaseException) -> str:
    """Return an error of the operator's code in one line, with its place."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, SyntaxError):
        return what
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_theirs(f.filename)]
    return f"{what} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else what


def _is_theirs(file: str) -> bool:
    return not file.startswith(("<", *_OTHERS))

"""Loaded by Python at startup, because `tensorpool run` puts its folder first on PYTHONPATH.

When the program imports NumPy or PyTorch, this module makes arrays and tensors take their memory
from tensorpool. A program that imports neither pays one call for each import. Programs can also import
tensorpool itself; with the part holders, it is imported at once. Then Python continues with the
sitecustomize that it would have found without this one.

Every Python version that the program starts reads this file, so it uses only old syntax."""

import os
import sys

_folder = os.path.dirname(__file__)
_package = os.environ.get("TENSORPOOL_PYTHON_PACKAGE", "")
_waiting = set(filter(None, os.environ.get("TENSORPOOL_PYTHON_PARTS", "").split(",")))


class _Finder(object):
    """Observes the imports of the waiting modules, and leaves all imports to the other finders."""

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting:
            return None
        for finder in list(sys.meta_path):
            spec = None
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
            if spec is not None:
                _enable_after(spec.loader, name)
                return spec
        return None


def _enable_after(loader, name):
    """Wraps the loader's exec_module. A lookup creates a loader, but may never load the module."""
    run = getattr(loader, "exec_module", None)
    if run is None or "exec_module" in getattr(loader, "__dict__", {"exec_module": None}):
        return

    def exec_module(module):
        del loader.exec_module  # removes the instance's attribute; the class has another
        run(module)
        if name in _waiting:
            _waiting.discard(name)
            if not _waiting:
                _remove_finders()
            _enable(name)

    loader.exec_module = exec_module


def _remove_finders():
    """From here on, the package is loaded."""
    sys.meta_path[:] = [one for one in sys.meta_path if one not in (_finder, _package_finder)]


def _enable(name):
    try:
        getattr(_tensorpool(), "enable_" + name)()
    except Exception as error:
        version = ".".join(map(str, sys.version_info[:3]))
        _notify("%s\nPython %s (%s): %s" % (name, version, sys.executable, error))
    else:
        _notify(name)


class _PackageFinder(object):
    """Finds the package for programs that import it, for example to mark iterations, if no other finder
    does."""

    def find_spec(self, name, path=None, target=None):
        return _spec() if name == "tensorpool" else None


_finder = _Finder()
_package_finder = _PackageFinder()


def _spec():
    """Finds the package without adding its folder to sys.path, which may hold other packages."""
    from importlib import machinery, util

    suffixes = machinery.EXTENSION_SUFFIXES
    if not any(os.path.exists(os.path.join(_package, "_tensorpool" + one)) for one in suffixes):
        modules = [one for one in os.listdir(_package) if one.startswith("_tensorpool.")]
        expected = "expected _tensorpool" + suffixes[0]
        raise ImportError("%s was built for another Python: %s" % (" ".join(modules), expected))
    return util.spec_from_file_location(
        "tensorpool",
        os.path.join(_package, "__init__.py"),
        submodule_search_locations=[_package],
    )


def _tensorpool():
    if "tensorpool" in sys.modules:
        return sys.modules["tensorpool"]
    from importlib import util

    spec = _spec()
    package = util.module_from_spec(spec)
    sys.modules["tensorpool"] = package
    try:
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules["tensorpool"]
        raise
    return package


def _notify(note):
    """Sends a note to `tensorpool run`, for its report."""
    try:
        import _socket

        caller = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            caller.settimeout(1)
            caller.connect(b"\0" + os.environ["TENSORPOOL_OBSERVER"].encode())
            caller.send(note.encode("utf-8", "replace")[:1000])
        finally:
            caller.close()
    except Exception:
        pass  # without a listener, the note is not needed


def _run_next():
    """Runs the next sitecustomize. Python reports its errors as it does without this one."""
    ours = sys.modules.pop("sitecustomize")
    sys.path[:] = [one for one in sys.path if one != _folder]
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


if sys.version_info >= (3, 4):  # older versions lack this finder protocol and a supported NumPy
    for _name in sorted(_waiting.intersection(list(sys.modules) + ["holders"])):
        _waiting.discard(_name)
        _enable(_name)
    if _waiting:
        sys.meta_path.insert(0, _finder)
    sys.meta_path.append(_package_finder)
_run_next()

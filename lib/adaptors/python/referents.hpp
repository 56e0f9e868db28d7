#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace tensorpool::python {

/// What objects refer to, as the garbage collector sees it, like gc.get_referents. NumPy's arrays,
/// and dicts and tuples of them, are not tracked, so gc.get_objects and gc.get_referrers miss them.
/// The functions run no Python code and hold the interpreter's lock. They stop at the time `until`,
/// in nanoseconds of the steady clock, which is that of time.monotonic_ns.

/// Finds the arrays to which `objects` and the untracked containers below them refer, and the
/// tensors among `objects`, by their exact types. Returns two lists: the arrays whose memory, which
/// may be another array's, is among the `count` largest, and all tensors. Adds the containers to
/// `objects`. Needs no NumPy.
pybind11::tuple find_arrays(pybind11::list objects, const pybind11::set& array_types,
                            const pybind11::set& tensor_types, std::size_t count,
                            std::int64_t until);

/// Returns a list of pairs: one of the targets, and one of `objects` that refers to it. A target
/// has at most `max_referrers`.
pybind11::list find_referrers(const pybind11::list& objects, const pybind11::list& targets,
                              std::size_t max_referrers, std::int64_t until);

/// Returns the key under which a dict holds an object, or its index in a list or a tuple; None if
/// it does not hold it, or is of another type.
pybind11::object position_in(const pybind11::handle& container, const pybind11::handle& object);

/// Returns the variables of a frame as pairs of name and value, cells included. Reads them without
/// `f_locals`, whose dict would keep the values alive. Returns none before Python 3.11.
pybind11::list variables_of(const pybind11::handle& frame);

}  // namespace tensorpool::python

#pragma once

#include <pybind11/pybind11.h>

namespace tensorpool::python {

/// Adds the classes on which tensorpool.StashedDict is built to the extension module.
void add_stashed_maps(pybind11::module_& module);

}  // namespace tensorpool::python

#pragma once

#include <pybind11/pybind11.h>

namespace tensorpool::python {

/// Adds the class on which tensorpool.stash is built to the extension module.
void add_stashes(pybind11::module_& module);

}  // namespace tensorpool::python

#pragma once

#include <pybind11/pybind11.h>

namespace tensorpool::python {

/// Adds the classes on which tensorpool.planned is built to the extension module.
void add_planned_loop(pybind11::module_& module);

}  // namespace tensorpool::python

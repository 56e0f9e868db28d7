#pragma once

#include <pybind11/pybind11.h>

namespace tensorpool::python {

/// Adds the classes on which tensorpool.budget is built to the extension module.
void add_budgets(pybind11::module_& module);

}  // namespace tensorpool::python

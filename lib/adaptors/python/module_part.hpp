#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace tensorpool::python {

/// Makes a function of the module run without the interpreter's lock.
using Unlocked = pybind11::call_guard<pybind11::gil_scoped_release>;

/// A part of the extension module. Each source that adds functions and classes has one object, so
/// that the module contains the parts of all sources that are linked.
class ModulePart {
public:
    explicit ModulePart(void (*add)(pybind11::module_& module)) noexcept
        : add_(add), next_(std::exchange(first, this)) {}
    ModulePart(const ModulePart&) = delete;
    ModulePart& operator=(const ModulePart&) = delete;

    static void add_all(pybind11::module_& module) {
        for (const ModulePart* part = first; part != nullptr; part = part->next_)
            part->add_(module);
    }

private:
    static inline constinit ModulePart* first = nullptr;

    void (*add_)(pybind11::module_& module);
    ModulePart* next_;
};

}  // namespace tensorpool::python

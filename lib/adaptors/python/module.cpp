// The extension module _tensorpool, on which tensorpool/__init__.py is built.

#include "adaptors/python/context_blocks.hpp"
#include "adaptors/python/module_part.hpp"

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/timeline.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

// Returns bytes, because names may not be valid UTF-8. Python replaces the invalid parts.
py::bytes snapshot_json() {
    std::string text;
    {
        const py::gil_scoped_release release;
        text = to_json(take_snapshot());
    }
    return text;
}

std::size_t trim() {
    return get_global_memory_pool().trim();
}

void set_limit(std::size_t bytes) {
    get_global_memory_pool().set_max_capacity(bytes);
}

}  // namespace

PYBIND11_MODULE(_tensorpool, module) {
    module.doc() = "Internal module of the package tensorpool; use the package.";
    module.def("snapshot_json", snapshot_json);
    module.def("mark_timeline", [](const std::string& text) { mark_timeline(text); });
    module.def("trim", trim, Unlocked());
    module.def("limit", [] { return get_global_memory_pool().max_capacity(); });
    module.def("set_limit", set_limit, Unlocked());
    add_context_blocks(module);
    ModulePart::add_all(module);
}

}  // namespace tensorpool::python

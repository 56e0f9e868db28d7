#include "adaptors/python/module_part.hpp"

#include <tensorpool/stash.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

std::span<std::byte> memory_at(std::uintptr_t address, std::size_t bytes) {
    return {reinterpret_cast<std::byte*>(address), bytes};
}

// `folder` is "" to keep the content in memory. `code` and `bits` are a DataType's.
std::unique_ptr<Stash> make_stash(std::uintptr_t address, std::size_t bytes,
                                  const std::string& name, unsigned code, unsigned bits,
                                  const std::string& folder) {
    StashOptions options;
    options.name = name;
    options.type = {.code = static_cast<DataCode>(code), .bits = static_cast<std::uint16_t>(bits)};
    options.method = folder.empty() ? StashMethod::compress : StashMethod::spill;
    options.folder = folder;
    const py::gil_scoped_release release;
    return std::make_unique<Stash>(std::span<const std::byte>(memory_at(address, bytes)),
                                   std::move(options));
}

void restore_to(Stash& stash, std::uintptr_t address, std::size_t bytes) {
    const py::gil_scoped_release release;
    stash.restore_to(memory_at(address, bytes));
}

const ModulePart part([](py::module_& module) {
    py::class_<Stash>(module, "Stash")
        .def(py::init(&make_stash))
        .def("restore_to", &restore_to)
        .def("__bool__", [](const Stash& stash) { return static_cast<bool>(stash); })
        .def("prefetch", &Stash::prefetch)
        .def("bytes_at_rest", &Stash::bytes_at_rest);
});

}  // namespace
}  // namespace tensorpool::python

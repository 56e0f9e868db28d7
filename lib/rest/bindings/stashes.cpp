#include "adaptors/python/module_part.hpp"

#include <cstring>

#include <tensorpool/stashed_map.hpp>

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
    stash.restore_to(memory_at(address, bytes));
}

// The keys of the dict are Python's, which only code with the interpreter's lock may compare.
using Map = StashedMap<std::uint64_t>;

std::unique_ptr<Map> make_map(const std::string& name, Budget* budget, std::size_t memory_bytes,
                              const std::string& folder, unsigned code, unsigned bits) {
    return std::make_unique<Map>(StashedMapOptions{
        .name = name,
        .budget = budget,
        .memory_bytes = memory_bytes,
        .folder = folder,
        .type = {.code = static_cast<DataCode>(code), .bits = static_cast<std::uint16_t>(bits)}});
}

void put(Map& map, std::uint64_t key, std::uintptr_t address, std::size_t bytes) {
    PooledAllocation tensor(map.pool(), bytes);
    if (bytes != 0) std::memcpy(tensor.get(), reinterpret_cast<const void*>(address), bytes);
    map.put(key, std::move(tensor));
}

/// Adds a class of pinned tensors, whose memory Python reads as a buffer.
template <class Tensor>
void add_pinned(py::module_& module, const char* name) {
    py::class_<Tensor>(module, name, py::buffer_protocol())
        .def_buffer([](const Tensor& tensor) {
            return py::buffer_info(tensor.template as<std::uint8_t>().data(),
                                   static_cast<py::ssize_t>(tensor.size()));
        })
        .def("__bool__", [](const Tensor& tensor) { return static_cast<bool>(tensor); });
}

py::dict statistics_of(const Map& map) {
    const StashedMapStatistics now = map.statistics();
    py::dict statistics;
    statistics["entries"] = now.entries;
    statistics["memory_bytes"] = now.memory_bytes;
    statistics["stashed_bytes"] = now.stashed_bytes;
    statistics["compressed_bytes"] = now.compressed_bytes;
    statistics["spilled_bytes"] = now.spilled_bytes;
    statistics["hits"] = now.hits;
    statistics["misses"] = now.misses;
    statistics["stashes"] = now.stashes;
    statistics["spills"] = now.spills;
    statistics["restores"] = now.restores;
    statistics["failures"] = now.failures;
    statistics["stash_ns"] = now.stash_ns;
    statistics["restore_ns"] = now.restore_ns;
    return statistics;
}

const ModulePart part([](py::module_& module) {
    py::class_<Stash>(module, "Stash")
        .def(py::init(&make_stash))
        .def("restore_to", &restore_to, Unlocked())
        .def("__bool__", [](const Stash& stash) { return static_cast<bool>(stash); })
        .def("prefetch", &Stash::prefetch)
        .def("bytes_at_rest", &Stash::bytes_at_rest);
    add_pinned<StashedTensor>(module, "StashedTensor");
    add_pinned<StashedTensorView>(module, "StashedTensorView");
    py::class_<Map>(module, "StashedMap")
        .def(py::init(&make_map))
        .def("put", &put, Unlocked())
        .def("get", &Map::get, Unlocked())
        .def("read", &Map::read, Unlocked())
        .def("erase", &Map::erase, Unlocked())
        .def("prefetch", &Map::prefetch)
        .def("statistics", &statistics_of)
        .def("last_failure", [](const Map& map) { return py::bytes(map.last_failure()); });
});

}  // namespace
}  // namespace tensorpool::python

#include "adaptors/python/module_part.hpp"

#include <optional>
#include <stdexcept>

#include <tensorpool/serve_scope.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

PlannedArenaOptions named(const std::string& name) {
    PlannedArenaOptions options;
    options.name = name;
    options.warm_up_iterations = 1;
    return options;
}

// A planned arena and the scope of its current iteration. Beginning and ending an iteration release
// the interpreter lock, because planning takes milliseconds.
class PlannedLoop {
public:
    explicit PlannedLoop(const std::string& name) : arena_(named(name)) {}

    void begin(std::size_t min_bytes) {
        const py::gil_scoped_release release;
        scope_.emplace(arena_, min_bytes);
    }
    void end() {
        const py::gil_scoped_release release;
        scope_.reset();
    }
    const ServeScope& scope() const {
        if (scope_) return *scope_;
        throw std::runtime_error("tensorpool: planned '" + arena_.name() +
                                 "': join: no iteration is under way; expected one");
    }
    std::string statistics_json() const { return to_json(arena_.statistics()); }
    void save(const std::string& path) const { arena_.save(path); }
    void load(const std::string& path) { arena_.load(path); }

private:
    PlannedArena arena_;
    std::optional<ServeScope> scope_;
};

// A thread's part in the iteration of a loop.
class JoinedLoop {
public:
    explicit JoinedLoop(const PlannedLoop& loop) : scope_(std::in_place, loop.scope()) {}
    void end() { scope_.reset(); }

private:
    std::optional<JoinServeScope> scope_;
};

const ModulePart part([](py::module_& module) {
    module.attr("default_min_bytes") = ServeScope::default_min_bytes;
    py::class_<PlannedLoop>(module, "PlannedLoop")
        .def(py::init<const std::string&>())
        .def("begin", &PlannedLoop::begin)
        .def("end", &PlannedLoop::end)
        .def("statistics_json",
             [](const PlannedLoop& loop) { return py::bytes(loop.statistics_json()); })
        .def("save", &PlannedLoop::save)
        .def("load", &PlannedLoop::load);
    py::class_<JoinedLoop>(module, "JoinedLoop")
        .def(py::init<const PlannedLoop&>(), py::keep_alive<1, 2>())
        .def("end", &JoinedLoop::end);
});

}  // namespace
}  // namespace tensorpool::python

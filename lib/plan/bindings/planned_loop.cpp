#include "adaptors/python/context_blocks.hpp"
#include "adaptors/python/module_part.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

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

/// A planned arena and its current iteration, which serves threads in ServedBlocks only. Beginning
/// and ending an iteration release the interpreter's lock, because planning takes milliseconds.
class PlannedLoop {
public:
    explicit PlannedLoop(const std::string& name) : arena_(named(name)) {}

    void begin(std::size_t min_bytes) {
        const InContext in_context;  // the arena remembers in which budget it began
        std::unique_ptr<ServeScope> iteration;
        {
            const py::gil_scoped_release release;
            iteration = std::make_unique<ServeScope>(arena_, min_bytes);
            iteration->pause();
        }
        iteration_ = std::move(iteration);
    }
    void end() {
        std::unique_ptr<ServeScope> iteration = std::move(iteration_);
        const py::gil_scoped_release release;
        iteration = nullptr;
    }
    /// Returns nullptr between iterations.
    const ServeScope* iteration() const noexcept { return iteration_.get(); }
    std::string name() const { return arena_.name(); }
    std::string statistics_json() const { return to_json(arena_.statistics()); }
    void save(const std::string& path) const { arena_.save(path); }
    void load(const std::string& path) { arena_.load(path); }

private:
    PlannedArena arena_;
    std::unique_ptr<ServeScope> iteration_;
};

/// A `with` block that is served from the plan of a loop, on the thread that began the block, while
/// that runs its context.
class ServedBlock : public OpenBlock {
public:
    ServedBlock(const py::object& owner, const PlannedLoop& loop) : OpenBlock(owner), loop_(loop) {}

    std::unique_ptr<Inside> follow() override {
        struct Served : Inside {
            explicit Served(const ServeScope& iteration) : thread(iteration) {}
            const JoinServeScope thread;
        };
        if (!is_of_this_thread() || loop_.iteration() == nullptr) return nullptr;
        return std::make_unique<Served>(*loop_.iteration());
    }

private:
    const PlannedLoop& loop_;
};

std::shared_ptr<ServedBlock> enter_served(const py::object& owner, const PlannedLoop& loop) {
    if (loop.iteration() == nullptr) {
        throw std::runtime_error("tensorpool: planned '" + loop.name() +
                                 "': join: no iteration is under way; expected one");
    }
    auto block = std::make_shared<ServedBlock>(owner, loop);
    enter_block(block);
    return block;
}

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
    py::class_<ServedBlock, OpenBlock, std::shared_ptr<ServedBlock>>(module, "ServedBlock");
    module.def("enter_served", enter_served);
});

}  // namespace
}  // namespace tensorpool::python

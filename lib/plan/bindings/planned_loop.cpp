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

/// A `with` block in which an iteration serves the thread that began the block, while that runs its
/// context. After the iteration, the pool does.
class ServedBlock : public OpenBlock {
public:
    ServedBlock(const py::object& owner, const std::shared_ptr<ServeScope>& iteration)
        : OpenBlock(owner), iteration_(iteration) {}

    std::unique_ptr<Inside> follow() override {
        struct Served : Inside {
            explicit Served(const ServeScope& iteration) : thread(iteration) {}
            const JoinServeScope thread;
        };
        const auto iteration = iteration_.lock();
        if (!is_of_this_thread() || iteration == nullptr) return nullptr;
        return std::make_unique<Served>(*iteration);
    }

private:
    const std::weak_ptr<ServeScope> iteration_;  // locked only with the interpreter's lock
};

/// A planned arena and its current iteration. Beginning and ending an iteration release the
/// interpreter's lock, because planning takes milliseconds.
class PlannedLoop {
public:
    explicit PlannedLoop(const std::string& name) : arena_(named(name)) {}

    /// Begins an iteration, and lets it serve the calling thread in the present context.
    void begin(const py::object& owner, std::size_t min_bytes) {
        const InContext in_context;  // the arena remembers in which budget it began
        std::shared_ptr<ServeScope> iteration;
        {
            const py::gil_scoped_release release;
            iteration = std::make_shared<ServeScope>(arena_, min_bytes);
            iteration->pause();  // only blocks serve threads
        }
        iteration_ = std::move(iteration);
        block_ = enter(owner);
    }
    /// Ends the iteration, if there is one, and its block.
    void end() {
        const auto block = std::exchange(block_, nullptr);
        std::shared_ptr<ServeScope> iteration = std::move(iteration_);
        if (block != nullptr) leave_block(*block);
        const py::gil_scoped_release release;
        iteration = nullptr;
    }
    /// Lets the current iteration serve the calling thread in the present context.
    OpenBlockPointer join(const py::object& owner) const {
        if (iteration_ != nullptr) return enter(owner);
        throw std::runtime_error("tensorpool: planned '" + arena_.name() +
                                 "': join: no iteration is under way; expected one");
    }
    std::string statistics_json() const { return to_json(arena_.statistics()); }
    void save(const std::string& path) const { arena_.save(path); }
    void load(const std::string& path) { arena_.load(path); }

private:
    OpenBlockPointer enter(const py::object& owner) const {
        auto block = std::make_shared<ServedBlock>(owner, iteration_);
        enter_block(block);
        return block;
    }

    PlannedArena arena_;
    std::shared_ptr<ServeScope> iteration_;
    OpenBlockPointer block_;  // of the iteration
};

const ModulePart part([](py::module_& module) {
    module.attr("default_min_bytes") = ServeScope::default_min_bytes;
    py::class_<PlannedLoop>(module, "PlannedLoop")
        .def(py::init<const std::string&>())
        .def("begin", &PlannedLoop::begin)
        .def("end", &PlannedLoop::end)
        .def("join", &PlannedLoop::join)
        .def("statistics_json",
             [](const PlannedLoop& loop) { return py::bytes(loop.statistics_json()); })
        .def("save", &PlannedLoop::save)
        .def("load", &PlannedLoop::load);
});

}  // namespace
}  // namespace tensorpool::python

#include "adaptors/python/context_blocks.hpp"
#include "adaptors/python/module_part.hpp"

#include <tensorpool/budget.hpp>

namespace tensorpool::python {

namespace {

namespace py = pybind11;

std::unique_ptr<Budget> make_budget(Budget* parent, const std::string& name, std::size_t hard,
                                    std::size_t soft) {
    const BudgetLimits limits{.soft = soft, .hard = hard};
    if (parent == nullptr) return std::make_unique<Budget>(name, limits);
    return std::make_unique<Budget>(*parent, name, limits);
}

py::tuple limits_of(const Budget& budget) {
    const BudgetLimits limits = budget.limits();
    return py::make_tuple(limits.hard, limits.soft);
}

// Holders may be asked, on this thread.
void set_limits(Budget& budget, std::size_t hard, std::size_t soft) {
    budget.set_limits({.soft = soft, .hard = hard});
}

/// A `with` block of a Budget of the package.
class OpenBudget : public OpenBlock {
public:
    using OpenBlock::OpenBlock;

    std::unique_ptr<Inside> follow() override {
        struct Charging : Inside {
            explicit Charging(Budget& budget) : scope(budget) {}
            BudgetScope scope;
        };
        return std::make_unique<Charging>(owner().attr("_budget").cast<Budget&>());
    }
};

std::shared_ptr<OpenBudget> enter_budget(const py::object& owner) {
    auto block = std::make_shared<OpenBudget>(owner);
    enter_block(block);
    return block;
}

/// Returns the innermost open block of `owner` in this context, or else None.
py::object open_block_of(const py::object& owner) {
    for (OpenBlockPointer block = innermost_block(); block != nullptr; block = block->outer()) {
        if (block->owner().is(owner)) return py::cast(block);
    }
    return py::none();
}

/// Returns the Budget of the package whose block is the innermost of this context, or None.
py::object current_budget() {
    for (OpenBlockPointer block = innermost_block(); block != nullptr; block = block->outer()) {
        if (dynamic_cast<OpenBudget*>(block.get()) != nullptr) return block->owner();
    }
    return py::none();
}

const ModulePart part([](py::module_& module) {
    py::class_<Budget>(module, "Budget")
        .def(py::init(&make_budget))
        .def("in_use", &Budget::in_use)
        .def("limits", &limits_of)
        .def("set_limits", &set_limits, Unlocked())
        .def("statistics_json",
             [](const Budget& budget) { return py::bytes(to_json(budget.statistics())); });
    py::class_<OpenBudget, OpenBlock, std::shared_ptr<OpenBudget>>(module, "OpenBudget");
    module.def("enter_budget", enter_budget);
    module.def("open_block_of", open_block_of);
    module.def("current_budget", current_budget);
});

}  // namespace
}  // namespace tensorpool::python

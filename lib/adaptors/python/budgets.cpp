#include "adaptors/python/module_part.hpp"

#include <memory>
#include <optional>

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
    const py::gil_scoped_release release;
    budget.set_limits({.soft = soft, .hard = hard});
}

/// A BudgetScope that begins at construction and ends by a call on the same thread. If that never
/// comes, as when a thread ends inside its `with` block, the scope is left as it is: the garbage
/// collector may destroy this object on another thread.
class OpenBudgetScope {
public:
    explicit OpenBudgetScope(Budget& budget) : scope_(new std::optional<BudgetScope>) {
        scope_->emplace(budget);
    }
    void end() {
        delete scope_;
        scope_ = nullptr;
    }

private:
    std::optional<BudgetScope>* scope_;
};

const ModulePart part([](py::module_& module) {
    py::class_<Budget>(module, "Budget")
        .def(py::init(&make_budget))
        .def("in_use", &Budget::in_use)
        .def("limits", &limits_of)
        .def("set_limits", &set_limits)
        .def("statistics_json",
             [](const Budget& budget) { return py::bytes(to_json(budget.statistics())); });
    py::class_<OpenBudgetScope>(module, "OpenBudgetScope")
        .def(py::init<Budget&>())
        .def("end", &OpenBudgetScope::end);
});

}  // namespace
}  // namespace tensorpool::python

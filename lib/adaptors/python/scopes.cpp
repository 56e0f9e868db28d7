#include "adaptors/python/context_blocks.hpp"
#include "adaptors/python/module_part.hpp"

#include <optional>

#include <tensorpool/statistics_scope.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

/// A `with` block of a Scope of the package. It counts on the thread on which it began, while that
/// runs its context.
class OpenScope : public OpenBlock {
public:
    OpenScope(const py::object& owner, const std::string& name)
        : OpenBlock(owner), scope_(std::in_place, name) {
        scope_->pause();  // until the thread has left the blocks of other contexts
    }

    std::unique_ptr<Inside> follow() override {
        struct Counting : Inside {
            explicit Counting(std::optional<StatisticsScope>& counted) : scope(counted) {
                if (scope) scope->resume();
            }
            ~Counting() override {
                if (scope) scope->pause();  // unless another thread ended it
            }
            std::optional<StatisticsScope>& scope;
        };
        if (!is_of_this_thread()) return nullptr;
        return std::make_unique<Counting>(scope_);
    }

    /// Returns allocations, deallocations, requested, allocated and deallocated bytes, and the
    /// peak.
    py::tuple statistics() const {
        const ScopeStatistics so_far = scope_ ? scope_->statistics() : ScopeStatistics{};
        return py::make_tuple(so_far.allocations, so_far.deallocations, so_far.requested_bytes,
                              so_far.allocated_bytes, so_far.deallocated_bytes, so_far.peak_bytes);
    }
    /// Adds its counts to those of its name. The block must have ended.
    void add_up() { scope_.reset(); }

private:
    std::optional<StatisticsScope> scope_;
};

std::shared_ptr<OpenScope> enter_scope(const py::object& owner, const std::string& name) {
    auto block = std::make_shared<OpenScope>(owner, name);
    enter_block(block);
    return block;
}

const ModulePart part([](py::module_& module) {
    py::class_<OpenScope, OpenBlock, std::shared_ptr<OpenScope>>(module, "OpenScope")
        .def("statistics", &OpenScope::statistics)
        .def("add_up", &OpenScope::add_up);
    module.def("enter_scope", enter_scope);
});

}  // namespace
}  // namespace tensorpool::python

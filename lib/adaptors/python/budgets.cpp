#include "adaptors/python/context_budgets.hpp"
#include "adaptors/python/module_part.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tensorpool/budget.hpp>

namespace tensorpool::python {

constinit std::atomic<bool> any_budget_was_entered = false;

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

/// A `with` block of a Budget of the package, which must not keep that object alive: its limits end
/// with it. The block is open until `end`, which any thread may call, in any order of blocks.
class OpenBudget {
public:
    OpenBudget(const py::object& owner, std::shared_ptr<OpenBudget> outer)
        : owner_(owner), outer_(std::move(outer)) {}

    /// The object of the package, or None if it has ended.
    py::object owner() const { return owner_(); }
    bool is_open() const { return is_open_ && !owner().is_none(); }
    void end() noexcept {
        is_open_ = false;
        changes.fetch_add(1, std::memory_order_relaxed);
    }
    /// Returns the innermost open block around it, or nullptr, and forgets those that ended.
    const std::shared_ptr<OpenBudget>& outer() {
        while (outer_ != nullptr && !outer_->is_open())
            outer_ = std::shared_ptr<OpenBudget>(outer_->outer_);
        return outer_;
    }
    std::uint64_t id() const noexcept { return id_; }
    bool is_of_this_thread() const noexcept { return thread_ == PyThread_get_thread_ident(); }

    /// Counts ends. Relaxed: a thread follows its own ends, others at some time.
    static inline constinit std::atomic<std::uint64_t> changes = 0;

private:
    static inline constinit std::atomic<std::uint64_t> last_id = 0;

    py::weakref owner_;
    std::shared_ptr<OpenBudget> outer_;
    std::uint64_t id_ = ++last_id;
    unsigned long thread_ = PyThread_get_thread_ident();
    bool is_open_ = true;
};
using OpenBudgetPointer = std::shared_ptr<OpenBudget>;

/// The variable of contexts (PEP 567) whose value is the innermost block. It is made with the
/// module.
constinit PyObject* variable = nullptr;

py::object value_of_context() {
    PyObject* value = nullptr;
    if (PyContextVar_Get(variable, nullptr, &value) != 0) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
}

/// Returns the innermost open block of the present context, or nullptr.
OpenBudgetPointer innermost() {
    const py::object value = value_of_context();
    if (value.is_none()) return nullptr;
    auto block = value.cast<OpenBudgetPointer>();
    return block->is_open() ? block : block->outer();
}
void set_innermost(const OpenBudgetPointer& block) {
    const py::object value = block == nullptr ? py::none() : py::cast(block);
    PyObject* const token = PyContextVar_Set(variable, value.ptr());
    if (token == nullptr) throw py::error_already_set();
    Py_DECREF(token);
}

/// The scopes in which a thread is for the context that it last followed, the innermost last. If
/// the thread ends in them, they are left as they are.
class FollowedScopes {
public:
    /// Whether the thread is in the scopes for this value of the variable.
    bool follows(const py::object& value) const noexcept {
        return value.ptr() == value_ &&
               changes_ == OpenBudget::changes.load(std::memory_order_relaxed);
    }
    /// Enters the scopes of the present context's open blocks, and leaves all others.
    void follow() {
        const py::object value = value_of_context();
        if (follows(value)) return;
        const std::uint64_t changes = OpenBudget::changes.load(std::memory_order_relaxed);
        std::vector<OpenBudgetPointer> wanted;
        for (OpenBudgetPointer block = innermost(); block != nullptr; block = block->outer())
            wanted.insert(wanted.begin(), block);
        std::size_t same = 0;
        while (same < wanted.size() && same < scopes_.size() &&
               wanted[same]->id() == scopes_[same].id) {
            ++same;
        }
        scopes_.reserve(wanted.size());
        value_ = nullptr;
        while (scopes_.size() > same) leave_last();
        for (; same != wanted.size(); ++same) {
            const OpenBudget& block = *wanted[same];
            Budget& budget = block.owner().attr("_budget").cast<Budget&>();
            auto* const scope = new std::optional<BudgetScope>;
            scope->emplace(budget);
            scopes_.push_back({block.id(), scope, block.is_of_this_thread()});
        }
        held_ = wanted.empty() ? py::object() : value;
        if (held_ || value.is_none()) value_ = value.ptr();
        changes_ = changes;
    }

    /// Leaves the innermost scopes of blocks that began on other threads, which this thread is in
    /// only during its calls: it may serve another context next.
    void leave_those_of_others() {
        while (is_in_one_of_others()) {
            leave_last();
            value_ = nullptr;
            held_ = py::object();
        }
    }

    /// Whether it may be destroyed without the interpreter's lock.
    bool may_end() const noexcept { return scopes_.empty() && !held_; }
    bool is_in_one_of_others() const noexcept {
        return !scopes_.empty() && !scopes_.back().is_of_this_thread;
    }

private:
    struct Followed {
        std::uint64_t id;
        std::optional<BudgetScope>* scope;
        bool is_of_this_thread;
    };

    void leave_last() {
        delete scopes_.back().scope;
        scopes_.pop_back();
    }

    std::vector<Followed> scopes_;
    py::object held_;  // so that no other object gets its address
    PyObject* value_ = nullptr;
    std::uint64_t changes_ = 0;
};
class ScopesOfThread {
public:
    constexpr ScopesOfThread() noexcept = default;
    ~ScopesOfThread() {
        if (scopes_ != nullptr && scopes_->may_end()) delete std::exchange(scopes_, nullptr);
    }
    ScopesOfThread(const ScopesOfThread&) = delete;
    ScopesOfThread& operator=(const ScopesOfThread&) = delete;
    FollowedScopes& get() {
        if (scopes_ == nullptr) scopes_ = new FollowedScopes;
        return *scopes_;
    }

private:
    FollowedScopes* scopes_ = nullptr;
};

FollowedScopes& followed_scopes() {
    static thread_local ScopesOfThread scopes;
    return scopes.get();
}

OpenBudgetPointer enter_budget(const py::object& owner) {
    auto block = std::make_shared<OpenBudget>(owner, innermost());
    set_innermost(block);
    any_budget_was_entered.store(true, std::memory_order_relaxed);
    try {
        followed_scopes().follow();
    } catch (...) {
        block->end();
        throw;
    }
    return block;
}

/// Returns the innermost open block of `owner` in this context, or else None.
py::object open_block_of(const py::object& owner) {
    for (OpenBudgetPointer block = innermost(); block != nullptr; block = block->outer()) {
        if (block->owner().is(owner)) return py::cast(block);
    }
    return py::none();
}

void leave_budget(OpenBudget& block) {
    block.end();
    set_innermost(innermost());
    followed_scopes().follow();
    followed_scopes().leave_those_of_others();
}

/// Returns the Budget of the package whose block is the innermost of this context, or None.
py::object current_budget() {
    const OpenBudgetPointer block = innermost();
    return block == nullptr ? py::none() : block->owner();
}

const ModulePart part([](py::module_& module) {
    if (variable == nullptr) variable = PyContextVar_New("tensorpool.budget", Py_None);
    if (variable == nullptr) throw py::error_already_set();
    py::class_<Budget>(module, "Budget")
        .def(py::init(&make_budget))
        .def("in_use", &Budget::in_use)
        .def("limits", &limits_of)
        .def("set_limits", &set_limits)
        .def("statistics_json",
             [](const Budget& budget) { return py::bytes(to_json(budget.statistics())); });
    py::class_<OpenBudget, OpenBudgetPointer>(module, "OpenBudget");
    module.def("enter_budget", enter_budget);
    module.def("open_block_of", open_block_of);
    module.def("leave_budget", leave_budget);
    module.def("current_budget", current_budget);
});

}  // namespace

/// Whether the calling thread holds the interpreter's lock. `PyGILState_Check` says so of every
/// thread once there was a second interpreter.
static bool has_interpreter() noexcept {
    PyThreadState* const own = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
    return own != nullptr && own == PyThreadState_GetUnchecked();
#else
    return own != nullptr && own == _PyThreadState_UncheckedGet();
#endif
}

bool InContext::follow() noexcept {
    if (!has_interpreter()) return false;
    FollowedScopes* scopes = nullptr;
    try {
        scopes = &followed_scopes();
        if (scopes->follows(value_of_context())) [[likely]]
            return false;
        const py::error_scope pending;
        scopes->follow();
    } catch (const std::exception&) {  // no memory: it may be in fewer scopes, until the next call
    }
    return scopes != nullptr && scopes->is_in_one_of_others();
}

void InContext::leave() noexcept {
    const py::error_scope pending;
    followed_scopes().leave_those_of_others();
}

}  // namespace tensorpool::python

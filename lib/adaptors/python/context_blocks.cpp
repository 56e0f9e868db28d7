#include "adaptors/python/context_blocks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

/// The variable of contexts (PEP 567) whose value is the innermost block. It is made with the
/// module.
constinit PyObject* variable = nullptr;

/// Counts beginnings and ends of blocks. Relaxed: a thread follows its own ones, others at some
/// time.
constinit std::atomic<std::uint64_t> changes = 0;

std::uint64_t number_of_thread() noexcept {
    static constinit std::atomic<std::uint64_t> last_number = 0;
    static thread_local const std::uint64_t number = ++last_number;
    return number;
}

py::object value_of_context() {
    PyObject* value = nullptr;
    if (PyContextVar_Get(variable, nullptr, &value) != 0) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
}

/// The blocks in which a thread is for the context that it last followed, the innermost last. If
/// the thread ends in them, they are left as they are.
class FollowedBlocks {
public:
    /// Whether the thread is in the blocks for this value of the variable. No other block gets the
    /// address of the value before a block begins.
    bool follows(const py::object& value) const noexcept {
        return value.ptr() == value_ && changes_ == changes.load(std::memory_order_relaxed);
    }
    /// Enters the open blocks of the present context, and leaves all others. Does nothing while it
    /// is called: the interpreter may free arrays at any time.
    void follow() {
        const py::object value = value_of_context();
        if (is_following_ || follows(value)) return;
        const Following following(is_following_);
        const std::uint64_t changes_before = changes.load(std::memory_order_relaxed);
        std::vector<OpenBlockPointer> wanted;
        for (OpenBlockPointer block = innermost_block(); block != nullptr; block = block->outer())
            wanted.push_back(block);
        std::ranges::reverse(wanted);
        std::size_t same = 0;
        while (same < wanted.size() && same < blocks_.size() &&
               wanted[same] == blocks_[same].block) {
            ++same;
        }
        blocks_.reserve(wanted.size());
        value_ = nullptr;
        while (blocks_.size() > same) blocks_.pop_back();
        for (; same != wanted.size(); ++same)
            blocks_.push_back({wanted[same], wanted[same]->follow()});
        value_ = value.ptr();
        changes_ = changes_before;
    }

    /// Leaves the innermost blocks that began on other threads, which this thread is in only during
    /// its calls: it may serve another context next.
    void leave_those_of_others() {
        while (!is_following_ && is_in_one_of_others()) {
            blocks_.pop_back();
            value_ = nullptr;
        }
    }

    /// Whether it may be destroyed without the interpreter's lock.
    bool may_end() const noexcept { return blocks_.empty(); }
    bool is_in_one_of_others() const noexcept {
        return !blocks_.empty() && !blocks_.back().block->is_of_this_thread();
    }

private:
    struct Followed {
        OpenBlockPointer block;
        std::unique_ptr<Inside> inside;  // ends first
    };

    /// Sets a flag while it lives.
    struct Following {
        explicit Following(bool& flag) noexcept : is(flag) { is = true; }
        ~Following() { is = false; }
        Following(const Following&) = delete;
        Following& operator=(const Following&) = delete;
        bool& is;
    };

    std::vector<Followed> blocks_;
    bool is_following_ = false;
    PyObject* value_ = nullptr;
    std::uint64_t changes_ = 0;
};

FollowedBlocks& followed_blocks() {
    struct EndWithThread {
        void operator()(FollowedBlocks* blocks) const noexcept {
            if (blocks->may_end()) delete blocks;
        }
    };
    static thread_local const std::unique_ptr<FollowedBlocks, EndWithThread> blocks(
        new FollowedBlocks);
    return *blocks;
}

/// Whether the calling thread holds the interpreter's lock. `PyGILState_Check` says so of every
/// thread once there was a second interpreter.
bool has_interpreter() noexcept {
    PyThreadState* const own = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
    return own != nullptr && own == PyThreadState_GetUnchecked();
#else
    return own != nullptr && own == _PyThreadState_UncheckedGet();
#endif
}

}  // namespace

constinit std::atomic<bool> any_block_was_entered = false;

OpenBlock::OpenBlock(const py::object& owner)
    : owner_(owner), outer_(innermost_block()), thread_(number_of_thread()) {}

bool OpenBlock::is_of_this_thread() const noexcept {
    return thread_ == number_of_thread();
}

void OpenBlock::end() noexcept {
    is_open_ = false;
    changes.fetch_add(1, std::memory_order_relaxed);
}

const OpenBlockPointer& OpenBlock::outer() {
    while (outer_ != nullptr && !outer_->is_open()) outer_ = OpenBlockPointer(outer_->outer_);
    return outer_;
}

OpenBlockPointer innermost_block() {
    const py::object value = value_of_context();
    if (value.is_none()) return nullptr;
    auto block = value.cast<OpenBlockPointer>();
    return block->is_open() ? block : block->outer();
}

void enter_block(const OpenBlockPointer& block) {
    const py::object value = py::cast(block);
    PyObject* const token = PyContextVar_Set(variable, value.ptr());
    if (token == nullptr) throw py::error_already_set();
    Py_DECREF(token);
    changes.fetch_add(1, std::memory_order_relaxed);
    any_block_was_entered.store(true, std::memory_order_relaxed);
    try {
        followed_blocks().follow();
    } catch (...) {
        block->end();
        throw;
    }
}

// The variable keeps the block, which is skipped: a block may end while garbage is collected, in
// the middle of a change of the context.
void leave_block(OpenBlock& block) {
    block.end();
    followed_blocks().follow();
    followed_blocks().leave_those_of_others();
}

void add_context_blocks(py::module_& module) {
    if (variable == nullptr) variable = PyContextVar_New("tensorpool.block", Py_None);
    if (variable == nullptr) throw py::error_already_set();
    py::class_<OpenBlock, OpenBlockPointer>(module, "OpenBlock").def("leave", leave_block);
}

bool InContext::follow() noexcept {
    if (!has_interpreter()) return false;
    const py::error_scope pending;  // arrays are also freed while an exception is raised
    FollowedBlocks* blocks = nullptr;
    try {
        blocks = &followed_blocks();
        if (blocks->follows(value_of_context())) [[likely]]
            return false;
        blocks->follow();
    } catch (const std::exception&) {  // no memory: it may be in fewer blocks, until the next call
    }
    return blocks != nullptr && blocks->is_in_one_of_others();
}

void InContext::leave() noexcept {
    const py::error_scope pending;
    followed_blocks().leave_those_of_others();
}

}  // namespace tensorpool::python

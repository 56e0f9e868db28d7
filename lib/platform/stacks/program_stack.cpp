#include "platform/stacks/program_stack.hpp"

namespace tensorpool::platform {
namespace {

class Merged {
public:
    Merged(ProgramFrame* frames, std::size_t max, PythonFrame* python) noexcept
        : frames_(frames),
          max_(max),
          python_(python),
          python_count_(capture_python_frames(python, StackBuffers::max_python)) {}

    bool is_full() const noexcept { return count_ == max_; }
    bool has_python() const noexcept { return python_count_ != 0; }
    void add(ProgramFrame frame) noexcept {
        if (!is_full()) frames_[count_++] = frame;
    }
    /// Adds the Python calls that one call of the interpreter runs.
    void add_python_calls() noexcept {
        bool is_entry = false;
        while (next_ != python_count_ && !is_entry) {
            const PythonFrame& call = python_[next_++];
            add({.python_code = call.code, .line = call.line});
            is_entry = call.is_entry;
        }
    }
    /// Adds the Python calls whose native frames were not found, and returns the number of all.
    std::size_t finish() noexcept {
        while (next_ != python_count_) add_python_calls();
        return count_;
    }

private:
    ProgramFrame* frames_;
    std::size_t max_;
    std::size_t count_ = 0;
    const PythonFrame* python_;
    std::size_t python_count_;
    std::size_t next_ = 0;
};

}  // namespace

std::size_t capture_program_stack(ProgramFrame* frames, std::size_t max,
                                  StackBuffers& buffers) noexcept {
    Merged merged(frames, max, buffers.python);
    buffers.native_count =
        capture_stack(buffers.addresses, StackBuffers::max_native, buffers.slots);
    for (std::size_t i = 0; i != buffers.native_count && !merged.is_full(); ++i) {
        const std::uintptr_t address = buffers.addresses[i];
        if (merged.has_python() && runs_python_code(address)) {
            merged.add_python_calls();
        } else if (!merged.has_python() || !is_python_interpreter(address)) {
            merged.add({.address = address});
        }
    }
    return merged.finish();
}

}  // namespace tensorpool::platform

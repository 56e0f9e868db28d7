#include "platform/stacks/program_stack.hpp"

#include "platform/stacks/python_layout.hpp"

namespace tensorpool::platform::python {
namespace {

/// A signed number in pieces of 6 bits, lowest first; the lowest bit of all is the sign.
std::int64_t signed_number(const unsigned char* at, const unsigned char* end) noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; at != end && shift < 60; shift += 6) {
        value |= std::uint64_t{*at & 63U} << shift;
        if ((*at++ & 64U) == 0) break;
    }
    const auto magnitude = static_cast<std::int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
}

}  // namespace

// An entry begins with a byte whose highest bit is set: 4 bits of kind, 3 bits of length.
std::uint32_t line_in_table(const unsigned char* table, std::size_t bytes, std::uint32_t first_line,
                            std::ptrdiff_t instruction) noexcept {
    constexpr unsigned no_line = 15;
    const unsigned char* const end = table + bytes;
    std::int64_t line = first_line;
    std::ptrdiff_t reached = 0;
    while (table != end) {
        const unsigned kind = *table >> 3 & 15U;
        reached += (*table++ & 7U) + 1;
        if (kind == 13 || kind == 14) line += signed_number(table, end);
        if (kind >= 10 && kind <= 12) line += kind - 10;
        if (instruction < reached) return kind == no_line ? 0 : static_cast<std::uint32_t>(line);
        while (table != end && (*table & 128U) == 0) ++table;
    }
    return 0;
}

}  // namespace tensorpool::platform::python

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

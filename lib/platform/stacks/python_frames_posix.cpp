#include <dlfcn.h>
#if __has_include(<link.h>)
#include <link.h>
#endif

#include <algorithm>
#include <atomic>
#include <string_view>

#include "platform/stacks/python_frames.hpp"
#include "platform/stacks/python_layout.hpp"

namespace tensorpool::platform {
namespace {

using python::Layout;
using python::read;

constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;  // of hashes

/// An interpreter whose frames can be read. Set once.
struct Interpreter {
    const Layout* layout = nullptr;
    void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState
    int (*is_finalizing)() = nullptr;   // Py_IsFinalizing, or its name before 3.13
    const void* code_type = nullptr;    // PyCode_Type
    std::uintptr_t run = 0;             // _PyEval_EvalFrameDefault
    std::uintptr_t run_end = 0;
    std::uintptr_t begin = 0;  // of the file that contains it
    std::uintptr_t end = 0;
};
constinit Interpreter found;
constinit std::atomic<const Interpreter*> interpreter = nullptr;

const Layout* layout_of(unsigned long version) noexcept {
    if (version >> 24 != 3) return nullptr;
    const auto* const layout =
        std::ranges::find(python::layouts, version >> 16 & 255, &Layout::minor);
    return layout == std::end(python::layouts) ? nullptr : layout;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
bool find_code_of(Interpreter& one) noexcept {
    Dl_info info{};
    void* found_symbol = nullptr;
    auto* const run = reinterpret_cast<void*>(one.run);
    if (dladdr1(run, &info, &found_symbol, RTLD_DL_SYMENT) == 0) return false;
    const auto* const symbol = static_cast<const ElfW(Sym)*>(found_symbol);
    if (symbol == nullptr) return false;
    dl_find_object file{};
    if (_dl_find_object(run, &file) != 0) return false;
    one.run_end = one.run + symbol->st_size;
    one.begin = reinterpret_cast<std::uintptr_t>(file.dlfo_map_start);
    one.end = reinterpret_cast<std::uintptr_t>(file.dlfo_map_end);
    return true;
}
#else
bool find_code_of(Interpreter&) noexcept {
    return false;
}
#endif

bool look_for_python(Interpreter& one) noexcept {
    const auto* const version =
        static_cast<const unsigned long*>(dlsym(RTLD_DEFAULT, "Py_Version"));
    if (version == nullptr || sizeof(void*) != 8) return false;
    one.layout = layout_of(*version);
    one.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    one.run = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"));
    one.thread_state =
        reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    void* is_finalizing = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (is_finalizing == nullptr) is_finalizing = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    one.is_finalizing = reinterpret_cast<int (*)()>(is_finalizing);
    return is_finalizing != nullptr && one.layout != nullptr && one.code_type != nullptr &&
           one.run != 0 && one.thread_state != nullptr && find_code_of(one);
}

// At its end, the interpreter frees the states of threads that may still run native code.
const void* current_frame(const Interpreter& one) noexcept {
    if (one.is_finalizing() != 0) return nullptr;
    const void* const thread = one.thread_state();
    if (thread == nullptr) return nullptr;
    const auto* const current = read<const void*>(thread, one.layout->current_in_thread);
    if (current == nullptr || one.layout->current_in_cframe == Layout::direct) return current;
    return read<const void*>(current, one.layout->current_in_cframe);
}

std::uint32_t line_of(const Layout& layout, const void* frame, const void* code) noexcept {
    constexpr std::ptrdiff_t instruction_bytes = 2;
    const auto* const at = read<const char*>(frame, layout.instruction);
    const char* const first = static_cast<const char*>(code) + layout.instructions;
    const auto* const table = read<const void*>(code, layout.line_table);
    return python::line_in_table(static_cast<const unsigned char*>(table) + python::text_of_bytes,
                                 read<std::size_t>(table, python::length_of_bytes),
                                 read<std::uint32_t>(code, layout.first_line),
                                 (at - first) / instruction_bytes);
}

/// Writes text until it is full.
struct Writer {
    char* to;
    std::size_t room;
    std::size_t length = 0;

    void put(std::string_view more) noexcept {
        const std::size_t count = std::min(more.size(), room - length);
        std::copy_n(more.data(), count, to + length);
        length += count;
    }
};

char32_t character_at(const void* text, std::size_t width, std::size_t at) noexcept {
    if (width == 1) return read<std::uint8_t>(text, at);
    return width == 2 ? read<std::uint16_t>(text, 2 * at) : read<std::uint32_t>(text, 4 * at);
}

void put_utf8(Writer& writer, char32_t c) noexcept {
    char bytes[4];
    const auto tail = [c](unsigned shift) { return static_cast<char>(0x80U | (c >> shift & 63U)); };
    std::size_t count = 0;
    if (c < 0x80) {
        bytes[count++] = static_cast<char>(c);
    } else if (c < 0x800) {
        bytes[count++] = static_cast<char>(0xC0U | c >> 6);
    } else if (c < 0x10000) {
        bytes[count++] = static_cast<char>(0xE0U | c >> 12);
        bytes[count++] = tail(6);
    } else {
        bytes[count++] = static_cast<char>(0xF0U | c >> 18);
        bytes[count++] = tail(12);
        bytes[count++] = tail(6);
    }
    if (c >= 0x80) bytes[count++] = tail(0);
    if (writer.room - writer.length >= count) writer.put({bytes, count});
}

/// A str of the interpreter. The bits of its state: 2 interned, 3 width, 1 compact, 1 ASCII.
class Text {
public:
    Text(const Layout& layout, const void* object) noexcept
        : length_(read<std::size_t>(object, python::length_of_text)) {
        const auto state = read<std::uint32_t>(object, python::state_of_text);
        const bool is_compact = (state >> 5 & 1U) != 0;
        const bool is_ascii = (state >> 6 & 1U) != 0;
        width_ = state >> 2 & 7U;
        if (!is_compact || (width_ != 1 && width_ != 2 && width_ != 4)) length_ = 0;
        text_ =
            static_cast<const char*>(object) + (is_ascii ? layout.ascii_text : layout.wide_text);
    }
    std::size_t length() const noexcept { return length_; }
    /// Writes the characters from `from` on.
    void write(Writer& writer, std::size_t from, std::size_t to) const noexcept {
        for (std::size_t at = from; at < to; ++at)
            put_utf8(writer, character_at(text_, width_, at));
    }

private:
    std::size_t length_;
    std::size_t width_ = 1;
    const void* text_ = nullptr;
};

}  // namespace

bool find_python() noexcept {
    enum class State : std::uint8_t { unknown, being_found };
    static constinit std::atomic<State> state = State::unknown;
    if (interpreter.load(std::memory_order_acquire) != nullptr) return true;
    if (state.exchange(State::being_found, std::memory_order_acquire) == State::being_found) {
        return false;
    }
    Interpreter one;
    const bool is_found = look_for_python(one);
    if (!is_found) (void)dlerror();  // the program did not ask
    if (is_found) {
        found = one;
        interpreter.store(&found, std::memory_order_release);
    }
    state.store(State::unknown, std::memory_order_release);
    return is_found;
}

// The frame that is being left stays the current one until its code object has been released, so
// the type is checked.
std::size_t capture_python_frames(PythonFrame* frames, std::size_t max) noexcept {
    const Interpreter* const one = interpreter.load(std::memory_order_acquire);
    if (one == nullptr) return 0;
    const Layout& layout = *one->layout;
    std::size_t count = 0;
    for (const void* frame = current_frame(*one); frame != nullptr && count != max;
         frame = read<const void*>(frame, layout.previous)) {
        if (layout.is_entry == 0 &&
            read<std::uint8_t>(frame, layout.owner) == python::owned_by_c_stack) {
            if (count != 0) frames[count - 1].is_entry = true;
            continue;
        }
        const auto* const code = read<const void*>(frame, layout.code);
        if (code == nullptr || read<const void*>(code, python::type_of_object) != one->code_type) {
            continue;
        }
        frames[count++] = {code, line_of(layout, frame, code),
                           layout.is_entry != 0 && read<bool>(frame, layout.is_entry)};
    }
    return count;
}

std::uint64_t hash_python_stack(std::size_t max) noexcept {
    const Interpreter* const one = interpreter.load(std::memory_order_acquire);
    if (one == nullptr) return 0;
    std::uint64_t hash = 0;
    std::size_t left = max;
    for (const void* frame = current_frame(*one); frame != nullptr && left != 0;
         --left, frame = read<const void*>(frame, one->layout->previous)) {
        hash = hash * odd + reinterpret_cast<std::uintptr_t>(frame);
        hash = hash * odd + read<std::uintptr_t>(frame, one->layout->code);
        hash = hash * odd + read<std::uintptr_t>(frame, one->layout->instruction);
    }
    return hash;
}

bool is_python_interpreter(std::uintptr_t address) noexcept {
    const Interpreter* const one = interpreter.load(std::memory_order_acquire);
    return one != nullptr && address - one->begin < one->end - one->begin;
}

bool runs_python_code(std::uintptr_t address) noexcept {
    const Interpreter* const one = interpreter.load(std::memory_order_acquire);
    return one != nullptr && address - one->run < one->run_end - one->run;
}

// The function's first line and the objects of its name and its file, which would all have to lie
// at the same addresses too.
std::uint64_t identify_python_code(const void* code) noexcept {
    const Layout& layout = *interpreter.load(std::memory_order_acquire)->layout;
    std::uint64_t number = reinterpret_cast<std::uintptr_t>(code);
    number = number * odd + read<std::uintptr_t>(code, layout.qualified_name);
    number = number * odd + read<std::uintptr_t>(code, layout.file);
    return number * odd + read<std::uint32_t>(code, layout.first_line);
}

std::size_t name_python_code(const void* code, char* text, std::size_t room) noexcept {
    const Layout& layout = *interpreter.load(std::memory_order_acquire)->layout;
    const Text function(layout, read<const void*>(code, layout.qualified_name));
    const Text file(layout, read<const void*>(code, layout.file));
    Writer writer{text, room};
    writer.put("python:");
    function.write(writer, 0, std::min(function.length(), room / 3));
    writer.put("@");
    const std::size_t left = room - writer.length;
    file.write(writer, file.length() > left ? file.length() - left : 0, file.length());
    return writer.length;
}

}  // namespace tensorpool::platform

#include "adaptors/c_calls.hpp"

namespace tensorpool::adaptors {
namespace {

constexpr std::size_t text_bytes = 1024;  // for the longest text of an AllocationError

// The text lies on the heap: the library's thread-local storage must stay small, or dlopen finds no
// room for it. These variables need no constructor or destructor, so they may be used at any moment
// of a thread's lifetime.
constinit thread_local const char* shown = "";
constinit thread_local char* buffer = nullptr;
constinit thread_local bool buffer_is_gone = false;

/// Frees the buffer when the thread ends. Destructors that run later get no new one, because
/// nothing would free it.
struct BufferOwner {
    ~BufferOwner() {
        shown = "";
        delete[] buffer;
        buffer = nullptr;
        buffer_is_gone = true;
    }
};

bool make_buffer() noexcept {
    if (buffer_is_gone) return false;
    buffer = new (std::nothrow) char[text_bytes];
    if (buffer == nullptr) return false;
    thread_local BufferOwner owner;
    static_cast<void>(owner);
    return true;
}

}  // namespace

const char* last_error() noexcept {
    return shown;
}

void set_last_error(const char* function, const char* text) noexcept {
    if (buffer == nullptr && !make_buffer()) {
        shown =
            "tensorpool: a call failed, without memory for the reason or late at its thread's end";
        return;
    }
    constexpr std::string_view prefix = "tensorpool_";
    if (std::string_view(text).starts_with("tensorpool: ")) {
        std::snprintf(buffer, text_bytes, "%s", text);
    } else {
        std::snprintf(buffer, text_bytes, "tensorpool: %s: %s", function + prefix.size(), text);
    }
    shown = buffer;
}

}  // namespace tensorpool::adaptors

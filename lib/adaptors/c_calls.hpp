#pragma once

/// What all functions of the C interface share: no exception leaves them, and handles may be NULL.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <tensorpool/tensorpool.h>

namespace tensorpool::adaptors {

[[noreturn]] inline void refuse_null(const char* what, const char* expected) {
    throw std::invalid_argument(std::string(what) + " is NULL, expected " + expected);
}

/// Returns what a pointer of the caller points to. Throws std::invalid_argument if it is NULL,
/// naming `what` it is and what was `expected`.
template <class Object>
Object& required(Object* pointer, const char* what, const char* expected) {
    if (pointer == nullptr) [[unlikely]]
        refuse_null(what, expected);
    return *pointer;
}

/// Returns the caller's memory. Throws std::invalid_argument if it is NULL and has bytes.
inline std::span<std::byte> to_buffer(void* memory, std::size_t bytes,
                                      const char* what = "buffer") {
    if (memory == nullptr && bytes != 0) refuse_null(what, (std::to_string(bytes) + " B").c_str());
    return {static_cast<std::byte*>(memory), bytes};
}

/// The largest size that is accepted for a struct of the C interface. These structs begin with
/// their own size and grow at their end, so that a caller may be older or newer than the library.
/// No version is larger than this: a larger value was never set.
inline constexpr std::size_t largest_struct_bytes = 4096;

/// Throws std::invalid_argument unless `bytes` can be the size of a version of the struct.
inline void check_struct_bytes(const char* name, std::size_t bytes,
                               std::size_t first_version_bytes) {
    if (bytes >= first_version_bytes && bytes <= largest_struct_bytes) return;
    throw std::invalid_argument("struct_bytes is " + std::to_string(bytes) +
                                " B, expected sizeof(" + name + "), " +
                                std::to_string(first_version_bytes) + " B in the first version");
}

/// Copies the fields that this version knows into a caller's struct of `bytes` bytes, and sets the
/// rest of it to zero.
template <class Struct>
void copy_out(const Struct& ours, Struct* theirs, std::size_t bytes) {
    std::memcpy(theirs, &ours, std::min(bytes, sizeof ours));
    if (bytes > sizeof ours) {
        std::memset(reinterpret_cast<std::byte*>(theirs) + sizeof ours, 0, bytes - sizeof ours);
    }
}

/// Fills in the first `theirs->struct_bytes` bytes of a caller's struct with what `read` returns.
/// Throws std::invalid_argument, before `read` is called, if the pointer is NULL or the size is not
/// that of any version of the struct.
template <class Struct, class Read>
void fill_in(Struct* theirs, const char* what, const char* name, std::size_t first_version_bytes,
             Read read) {
    const std::size_t bytes = required(theirs, what, "a struct").struct_bytes;
    check_struct_bytes(name, bytes, first_version_bytes);
    copy_out(read(), theirs, bytes);
    theirs->struct_bytes = bytes;
}

/// Writes defaults into the first `struct_bytes` bytes of a caller's options, and zeros into the
/// fields that this version does not know. Throws std::invalid_argument if the pointer is NULL or
/// the size is not that of any version of the struct.
template <class Options>
void set_options(Options* options, std::size_t struct_bytes, const char* name,
                 std::size_t first_version_bytes, const Options& defaults) {
    required(options, "options", "a struct");
    check_struct_bytes(name, struct_bytes, first_version_bytes);
    copy_out(defaults, options, struct_bytes);
    options->struct_bytes = struct_bytes;
}

/// Returns the part of the caller's options that this version knows, and `defaults` for the rest.
/// Throws std::invalid_argument if a field that this version does not know is set.
template <class Options>
Options known_part(const Options& options, const Options& defaults, const char* name,
                   std::size_t first_version_bytes) {
    const std::size_t bytes = options.struct_bytes;
    check_struct_bytes(name, bytes, first_version_bytes);
    Options known = defaults;
    std::memcpy(&known, &options, std::min(bytes, sizeof known));
    if (bytes <= sizeof known) return known;

    const auto* const begin = reinterpret_cast<const unsigned char*>(&options);
    const bool all_zero = std::all_of(begin + sizeof known, begin + bytes,
                                      [](unsigned char byte) { return byte == 0; });
    if (all_zero) return known;
    throw std::invalid_argument("an option beyond the first " + std::to_string(sizeof known) +
                                " B is set, expected none that this older library does not know");
}

/// Converts the value of an enumeration whose values are 0 to `last`. Throws std::invalid_argument,
/// naming the field, for any other value.
template <class Enumeration>
Enumeration to_enumeration(const char* field, std::int32_t value, Enumeration last) {
    if (value >= 0 && value <= static_cast<std::int32_t>(last)) {
        return static_cast<Enumeration>(value);
    }
    throw std::invalid_argument(std::string(field) + " is " + std::to_string(value) +
                                ", expected 0 to " + std::to_string(static_cast<int>(last)));
}

/// Copies a field of our options to that of the C interface.
struct ToC {
    template <class Theirs, class Ours, class... Limits>
    void operator()(Theirs& theirs, const Ours& ours, const Limits&...) const {
        theirs = static_cast<Theirs>(ours);
    }
};
/// Copies a field of the options of the C interface to ours. Throws std::invalid_argument for a
/// value outside its enumeration, whose last value is given with the field's name.
struct FromC {
    template <class Field>
    void operator()(const Field& theirs, Field& ours) const {
        ours = theirs;
    }
    template <class Last>
    void operator()(std::int32_t theirs, auto& ours, const char* field, Last last) const {
        ours = static_cast<std::remove_reference_t<decltype(ours)>>(
            to_enumeration(field, theirs, last));
    }
};

inline constexpr std::size_t error_text_bytes = 1024;  // for the longest text of an AllocationError

// The text lies on the heap: the library's thread-local storage must stay small, or dlopen finds no
// room for it. These variables need no constructor or destructor, so they may be used at any moment
// of a thread's lifetime.
inline constinit thread_local const char* shown_error = "";
inline constinit thread_local char* error_buffer = nullptr;
inline constinit thread_local bool error_buffer_is_gone = false;

/// Frees the buffer when the thread ends. Destructors that run later get no new one, because
/// nothing would free it.
struct ErrorBufferOwner {
    ~ErrorBufferOwner() {
        shown_error = "";
        delete[] error_buffer;
        error_buffer = nullptr;
        error_buffer_is_gone = true;
    }
};

inline bool make_error_buffer() noexcept {
    if (error_buffer_is_gone) return false;
    error_buffer = new (std::nothrow) char[error_text_bytes];
    if (error_buffer == nullptr) return false;
    thread_local ErrorBufferOwner owner;
    static_cast<void>(owner);
    return true;
}

/// Returns why the last failed call of this thread through the C interface failed; "" before the
/// first. The text is valid until the next failure on this thread, or the thread's end. If there is
/// no memory for it, and in destructors that run late at a thread's end, it says only that a call
/// failed.
inline const char* last_error() noexcept {
    return shown_error;
}
/// Sets this thread's last error: `text`, prefixed with "tensorpool: name: " unless it begins with
/// "tensorpool: ", and cut to 1023 bytes. The function is tensorpool_name.
inline void set_last_error(const char* function, const char* text) noexcept {
    if (error_buffer == nullptr && !make_error_buffer()) {
        shown_error =
            "tensorpool: a call failed, without memory for the reason or late at its thread's end";
        return;
    }
    constexpr std::string_view prefix = "tensorpool_";
    if (std::string_view(text).starts_with("tensorpool: ")) {
        std::snprintf(error_buffer, error_text_bytes, "%s", text);
    } else {
        std::snprintf(error_buffer, error_text_bytes, "tensorpool: %s: %s",
                      function + prefix.size(), text);
    }
    shown_error = error_buffer;
}

/// Runs `call` and returns its status. If `call` throws, the text becomes this thread's last error.
/// By default `function` is the function of the C interface that calls this.
template <class Call>
tensorpool_status guarded(Call call, const char* function = __builtin_FUNCTION()) noexcept {
    try {
        call();
        return tensorpool_ok;
    } catch (const std::bad_alloc& error) {
        set_last_error(function, error.what());
        return tensorpool_out_of_memory;
    } catch (const std::invalid_argument& error) {
        set_last_error(function, error.what());
        return tensorpool_invalid_argument;
    } catch (const std::out_of_range& error) {
        set_last_error(function, error.what());
        return tensorpool_invalid_argument;
    } catch (const std::exception& error) {
        set_last_error(function, error.what());
    } catch (...) {
        set_last_error(function, "failed with an exception without a text");
    }
    return tensorpool_other_failure;
}

/// Like `guarded`, but returns the result of `call`; 0, NULL or a struct of zeros if it throws.
template <class Call>
auto or_zero(Call call, const char* function = __builtin_FUNCTION()) noexcept {
    decltype(call()) result = {};
    guarded([&] { result = call(); }, function);
    return result;
}

/// Like `guarded`, but writes the text that `make` returns by the rules of snprintf, and returns
/// what snprintf does; -1 if `make` throws.
template <class Make>
int report(char* buffer, std::size_t buffer_bytes, Make make,
           const char* function = __builtin_FUNCTION()) noexcept {
    int bytes = -1;
    guarded([&] { bytes = std::snprintf(buffer, buffer_bytes, "%s", make().c_str()); }, function);
    return bytes;
}

/// Returns the object that a handle stands for. Throws like `required`.
template <class Object, class Handle>
auto& object_of(Handle* handle, const char* what, const char* expected) {
    using Type = std::conditional_t<std::is_const_v<Handle>, const Object, Object>;
    return required(reinterpret_cast<Type*>(handle), what, expected);
}

}  // namespace tensorpool::adaptors

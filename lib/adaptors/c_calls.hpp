#pragma once

/// @file
/// What all functions of the C interface share: no exception leaves them, and handles may be NULL.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <tensorpool/tensorpool.h>

#include "adaptors/last_error.hpp"

namespace tensorpool::adaptors {

/// Runs `call` and returns its status. If `call` throws, the text becomes this thread's last error.
template <class Call>
tensorpool_status guarded(const char* function, Call call) noexcept {
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

/// Runs `call` and returns its result, or `failed` if it throws. The text of the exception becomes
/// this thread's last error.
template <class Result, class Call>
Result guarded_or(Result failed, const char* function, Call call) noexcept {
    Result result = failed;
    guarded(function, [&] { result = call(); });
    return result;
}

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

/// Writes `text` by the rules of snprintf.
inline int print(const std::string& text, char* buffer, std::size_t buffer_bytes) {
    return std::snprintf(buffer, buffer_bytes, "%s", text.c_str());
}

}  // namespace tensorpool::adaptors

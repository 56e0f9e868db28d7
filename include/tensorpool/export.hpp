#pragma once

/// @file
/// Macros that control which names the library exports and how its thread-local variables are
/// accessed.

#if defined(_MSC_VER)
#if defined(TENSORPOOL_BUILDING_SHARED)
#define TENSORPOOL_API __declspec(dllexport)
#elif defined(TENSORPOOL_SHARED)
#define TENSORPOOL_API __declspec(dllimport)
#else
#define TENSORPOOL_API
#endif
#define TENSORPOOL_INITIAL_EXEC
#else
/// Marks a declaration that the library exports.
#define TENSORPOOL_API __attribute__((visibility("default")))
/// Marks a thread-local variable that is accessed without a call to the loader.
#define TENSORPOOL_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#endif

#pragma once

/// @file
/// What the library exports, and whether the fast path is inlined into callers.

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
#define TENSORPOOL_API __attribute__((visibility("default")))
#define TENSORPOOL_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#endif

#pragma once

/// @file
/// Macros that control which names the library exports and how its thread-local variables are
/// accessed.

/// Marks a declaration that the library exports.
#define TENSORPOOL_API __attribute__((visibility("default")))
/// Marks a thread-local variable that is accessed without a call to the loader.
#define TENSORPOOL_INITIAL_EXEC __attribute__((tls_model("initial-exec")))

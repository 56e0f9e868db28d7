#pragma once

/// @file
/// Allocation for the programs of this folder: from the global pool, or with malloc, which the
/// interposer serves from it.

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace processes {

/// Chooses the source of `take` and `give`: "pool" or "malloc". Returns false for other names.
bool choose_source(const char* name);
/// Allocates a block; ends the process if there is none.
void* take(std::size_t bytes);
/// Frees a block of `take`.
void give(void* p, std::size_t bytes);

/// Allocates and frees blocks of up to 2 MiB and checks their contents. Ends the process with a
/// message if a byte was changed.
void work(unsigned seed, unsigned count);

/// Threads that call `work` until the object ends.
class Workers {
public:
    explicit Workers(unsigned count);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

private:
    std::atomic<bool> ends_ = false;
    std::vector<std::thread> threads_;
};

/// Returns whether TENSORPOOL_CHECKS has this value.
bool has_checks(const char* name);

/// Prints a message and ends the process with 1, without calling any other exit handler.
[[noreturn]] void fail(const char* text);

}  // namespace processes

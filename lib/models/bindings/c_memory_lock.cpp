// Locked memory for C. A tensorpool_memory_lock is a MemoryLock.

#include <tensorpool/memory_lock.hpp>

#include <utility>

#include <tensorpool/tensorpool_models.h>

#include "adaptors/c_calls.hpp"

namespace tensorpool::adaptors {
namespace {

static_assert(static_cast<int>(LockLimit::none) == tensorpool_lock_limit_none);
static_assert(static_cast<int>(LockLimit::soft) == tensorpool_lock_limit_soft);
static_assert(static_cast<int>(LockLimit::hard) == tensorpool_lock_limit_hard);
static_assert(static_cast<int>(LockLimit::machine) == tensorpool_lock_limit_machine);
static_assert(static_cast<int>(LockLimit::container) == tensorpool_lock_limit_container);
static_assert(static_cast<int>(LockLimit::pages) == tensorpool_lock_limit_pages);
static_assert(static_cast<int>(LockLimit::system) == tensorpool_lock_limit_system);

constexpr const char* struct_name = "tensorpool_lock_outcome";
constexpr std::size_t first_version_bytes = offsetof(tensorpool_lock_outcome, available_bytes) +
                                            sizeof(tensorpool_lock_outcome::available_bytes);

auto& to_lock(auto* lock) {
    return object_of<MemoryLock>(lock, "lock", "one from tensorpool_memory_lock_create");
}

tensorpool_lock_outcome to_c(const LockOutcome& from) {
    return {.struct_bytes = sizeof(tensorpool_lock_outcome),
            .limit = static_cast<std::int32_t>(from.limit),
            .error = from.error,
            .asked_bytes = from.asked_bytes,
            .locked_bytes = from.locked_bytes,
            .limit_bytes = from.limit_bytes,
            .hard_limit_bytes = from.hard_limit_bytes,
            .needed_bytes = from.needed_bytes,
            .available_bytes = from.available_bytes};
}

/// A refusal of the system, which the C++ interface does not throw.
struct LockRefused : std::bad_alloc {
    explicit LockRefused(std::string why) : text(std::move(why)) {}
    const char* what() const noexcept override { return text.c_str(); }
    std::string text;
};

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::MemoryLock;

tensorpool_memory_lock* tensorpool_memory_lock_create(const void* range, size_t bytes) {
    return reinterpret_cast<tensorpool_memory_lock*>(or_zero([&] {
        if (range == nullptr && bytes != 0) {
            refuse_null("range", (std::to_string(bytes) + " B").c_str());
        }
        return new MemoryLock({static_cast<const std::byte*>(range), bytes});
    }));
}

void tensorpool_memory_lock_destroy(tensorpool_memory_lock* lock) {
    delete reinterpret_cast<MemoryLock*>(lock);
}

tensorpool_status tensorpool_memory_lock_grow_to(tensorpool_memory_lock* lock, size_t bytes,
                                                 tensorpool_lock_outcome* outcome) {
    return guarded([&] {
        MemoryLock& of = to_lock(lock);
        tensorpool::LockOutcome result;
        const auto grow = [&] {
            result = of.grow_to(bytes);
            return to_c(result);
        };
        if (outcome == nullptr) {
            grow();
        } else {
            fill_in(outcome, "outcome", struct_name, first_version_bytes, grow);
        }
        if (!result) throw LockRefused(to_text(result));
    });
}

size_t tensorpool_memory_lock_locked_bytes(const tensorpool_memory_lock* lock) {
    return or_zero([&] { return to_lock(lock).locked_bytes(); });
}

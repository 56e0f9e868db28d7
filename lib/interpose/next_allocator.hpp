#pragma once

#include <atomic>
#include <cstddef>
#include <tuple>
#include <type_traits>

/// The next allocator in the order in which the loader looks up names: the C library's, or one that
/// follows this library in LD_PRELOAD. It is found at the first call of each process, which the
/// loader itself makes in most cases.
namespace tensorpool::interpose {

/// Larger requests do not fit the addresses that a process has by default, on x86-64.
inline constexpr std::size_t max_request = std::size_t{1} << 47;

/// Called if the next allocator refused a request: gives the free memory of all pools back to the
/// system. Returns whether there was any, so that the same request may succeed.
bool gave_memory_back() noexcept;

/// Returns the block that `request()` gets, or gets after the pools gave their free memory back.
template <class Request>
void* next_block(std::size_t bytes, Request request) noexcept {
    void* const block = request();
    if (block == nullptr && bytes - 1 < max_request && gave_memory_back()) [[unlikely]]
        return request();
    return block;
}

/// A function of the next allocator. The last argument of one that returns a block is a size.
/// Relaxed: it leads to code, not to data that must be visible.
template <class Result, class... Arguments>
class NextFunction {
public:
    using Pointer = Result (*)(Arguments...) noexcept;

    explicit constexpr NextFunction(Pointer first) noexcept : function_(first) {}
    Result operator()(Arguments... arguments) const noexcept {
        if constexpr (std::is_same_v<Result, void*>) {
            const auto bytes = std::get<sizeof...(Arguments) - 1>(std::tie(arguments...));
            return next_block(bytes, [&] { return get()(arguments...); });
        } else {
            return get()(arguments...);
        }
    }
    Pointer get() const noexcept { return function_.load(std::memory_order_relaxed); }
    void set(Pointer function) noexcept { function_.store(function, std::memory_order_relaxed); }

private:
    std::atomic<Pointer> function_;
};

// The functions that every allocator has. All others are built from these: if an allocator lacks
// `pvalloc`, for example, the loader would find the one of another allocator. They are hidden in
// the declaration too, so that access needs no table of the loader.
extern constinit NextFunction<void*, std::size_t> next_malloc [[gnu::visibility("hidden")]];
extern constinit NextFunction<void*, std::size_t, std::size_t> next_calloc
    [[gnu::visibility("hidden")]];
extern constinit NextFunction<void*, void*, std::size_t> next_realloc [[gnu::visibility("hidden")]];
extern constinit NextFunction<void, void*> next_free [[gnu::visibility("hidden")]];
extern constinit NextFunction<int, void**, std::size_t, std::size_t> next_posix_memalign
    [[gnu::visibility("hidden")]];
extern constinit NextFunction<std::size_t, void*> next_usable_size [[gnu::visibility("hidden")]];

}  // namespace tensorpool::interpose

/// Memory for requests that the loader makes during the lookup of the next allocator. It is never
/// freed. The process has only one thread that early.
namespace tensorpool::interpose {

/// Returns zeroed memory aligned to 64 bytes; nullptr if the buffer is used up or the alignment is
/// larger.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept;
bool bootstrap_buffer_is_used() noexcept;
bool is_in_bootstrap_buffer(const void* p) noexcept;
/// Returns the size of a block in the buffer.
std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept;

}  // namespace tensorpool::interpose

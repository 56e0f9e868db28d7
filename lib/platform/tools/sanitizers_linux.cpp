#include "platform/tools/memory_tools.hpp"

#include <algorithm>

// The interface of compiler-rt and libsanitizer. The symbols are weak: the program's sanitizer, if
// it has one, defines them when the program is linked or loaded; otherwise they are null.
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);
[[gnu::weak]] int __asan_address_is_poisoned(const volatile void* address);
[[gnu::weak]] void* __asan_region_is_poisoned(void* address, std::size_t bytes);
[[gnu::weak]] void __msan_allocated_memory(const volatile void* address, std::size_t bytes);
[[gnu::weak]] void __msan_unpoison(const volatile void* address, std::size_t bytes);
}

namespace tensorpool::platform {
namespace sanitizers {
namespace {

bool is_address_sanitizer() noexcept {
    return __asan_poison_memory_region != nullptr;
}

/// Makes memory accessible, with undefined content.
void open_fresh(const void* address, std::size_t bytes) noexcept {
    if (is_address_sanitizer()) return __asan_unpoison_memory_region(address, bytes);
    __msan_allocated_memory(address, bytes);
}

// MemorySanitizer remembers this call as the origin of the undefined content.
void close(const void* address, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    if (is_address_sanitizer()) return __asan_poison_memory_region(address, bytes);
    __msan_allocated_memory(address, bytes);
}

void close_behind(const MarkedBlock& block) noexcept {
    close(static_cast<const char*>(block.address) + block.requested,
          block.usable - block.requested);
}

void allocate(const MarkedBlock& block) noexcept {
    open_fresh(block.address, block.requested);
    close_behind(block);
}

void resize(const MarkedBlock& block, std::size_t kept) noexcept {
    if (kept < block.requested) {
        open_fresh(static_cast<const char*>(block.address) + kept, block.requested - kept);
    }
    close_behind(block);
}

void free(const MarkedBlock& block) noexcept {
    close(block.address, block.usable);
}

// The records of AddressSanitizer are memory too, so only those that say otherwise are written.
void open(const void* address, std::size_t bytes) noexcept {
    if (!is_address_sanitizer()) return __msan_unpoison(address, bytes);
    constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    char* begin = const_cast<char*>(static_cast<const char*>(address));
    for (char* const end = begin + bytes; begin != end;) {
        const std::size_t piece = std::min(piece_bytes, static_cast<std::size_t>(end - begin));
        if (__asan_region_is_poisoned(begin, piece) != nullptr) {
            __asan_unpoison_memory_region(begin, piece);
        }
        begin += piece;
    }
}

void define(const void* address, std::size_t bytes) noexcept {
    if (!is_address_sanitizer()) __msan_unpoison(address, bytes);
}

bool is_closed(const void* address) noexcept {
    return is_address_sanitizer() && __asan_address_is_poisoned(address) != 0;
}

}  // namespace
}  // namespace sanitizers

const MemoryToolCalls sanitizer_calls = {
    sanitizers::allocate, sanitizers::resize, sanitizers::free, sanitizers::close,
    sanitizers::define,   sanitizers::close,  sanitizers::open, sanitizers::is_closed};

MemoryTool present_sanitizer() noexcept {
    if (sanitizers::is_address_sanitizer()) return MemoryTool::address_sanitizer;
    return __msan_allocated_memory != nullptr ? MemoryTool::memory_sanitizer : MemoryTool::none;
}

}  // namespace tensorpool::platform

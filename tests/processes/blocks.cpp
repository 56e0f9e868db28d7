#include "blocks.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

namespace processes {
namespace {

bool uses_malloc = false;

std::size_t size_of(unsigned number) {
    if (number % 64 == 63) return std::size_t{2} << 20;
    return number % 16 == 15 ? 70'000 + number % 7 * 20'000 : 1 + number * 7919U % 9000;
}

void check(const unsigned char* p, std::size_t bytes, unsigned number) {
    const auto value = static_cast<unsigned char>(number);
    if (p[0] != value || p[bytes / 2] != value || p[bytes - 1] != value) {
        fail("a block lost its content");
    }
}

}  // namespace

bool choose_source(const char* name) {
    uses_malloc = std::strcmp(name, "malloc") == 0;
    return uses_malloc || std::strcmp(name, "pool") == 0;
}

void* take(std::size_t bytes) {
    void* const p =
        uses_malloc ? std::malloc(bytes) : tensorpool::get_global_memory_pool().allocate(bytes);
    if (p == nullptr) fail("no memory");
    return p;
}

void give(void* p, std::size_t bytes) {
    if (uses_malloc) return std::free(p);
    tensorpool::get_global_memory_pool().deallocate(p, bytes);
}

void work(unsigned seed, unsigned count) {
    constexpr unsigned kept = 16;
    struct {
        unsigned char* p = nullptr;
        std::size_t bytes = 0;
        unsigned number = 0;
    } blocks[kept];
    for (unsigned i = 0; i < count + kept; ++i) {
        auto& block = blocks[i % kept];
        if (block.p != nullptr) {
            check(block.p, block.bytes, block.number);
            give(block.p, block.bytes);
        }
        block = {};
        if (i >= count) continue;
        block.number = seed + i;
        block.bytes = size_of(block.number);
        block.p = static_cast<unsigned char*>(take(block.bytes));
        std::memset(block.p, static_cast<unsigned char>(block.number),
                    block.bytes < 9000 ? block.bytes : 1);
        block.p[block.bytes / 2] = block.p[block.bytes - 1] = block.p[0];
    }
}

Workers::Workers(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        threads_.emplace_back([this, i] {
            for (unsigned seed = i * 1000; !ends_.load(std::memory_order_relaxed); seed += 7) {
                work(seed, 40);
            }
        });
    }
}

Workers::~Workers() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
}

bool has_checks(const char* name) {
    const char* const checks = std::getenv("TENSORPOOL_CHECKS");
    return checks != nullptr && std::strcmp(checks, name) == 0;
}

void fail(const char* text) {
    std::fprintf(stderr, "process_lives: %s\n", text);
    _exit(1);
}

}  // namespace processes

#include "platform/tools/memory_tools.hpp"

#include <valgrind/memcheck.h>

namespace tensorpool::platform {
namespace memcheck {
namespace {

// Reads what memcheck knows about one byte: 1 for success, 3 for a byte that is inaccessible.
unsigned long ask_about(const void* address) noexcept {
    unsigned char bits = 0;
    return VALGRIND_GET_VBITS(address, &bits, 1);
}

// A memory pool of memcheck whose pieces contain blocks. When a piece is freed, memcheck frees the
// blocks in it. So many blocks end at once without a list of them.
const char pieces = 0;

void allocate(const MarkedBlock& block) noexcept {
    (void)VALGRIND_MAKE_MEM_NOACCESS(block.address, block.usable);
    if (block.is_in_buffer) {
        (void)VALGRIND_MAKE_MEM_UNDEFINED(block.address, block.requested);
    } else {
        VALGRIND_MALLOCLIKE_BLOCK(block.address, block.requested, 0, 0);
    }
}

void resize(const MarkedBlock& block, std::size_t kept) noexcept {
    VALGRIND_RESIZEINPLACE_BLOCK(block.address, kept, block.requested, 0);
}

void free(const MarkedBlock& block) noexcept {
    if (block.is_in_buffer) {
        (void)VALGRIND_MAKE_MEM_NOACCESS(block.address, block.usable);
    } else {
        VALGRIND_FREELIKE_BLOCK(block.address, 0);
    }
}

void free_within(const void* address, std::size_t bytes) noexcept {
    VALGRIND_MEMPOOL_ALLOC(&pieces, address, bytes);
    VALGRIND_MEMPOOL_FREE(&pieces, address);
    (void)VALGRIND_MAKE_MEM_NOACCESS(address, bytes);
}

void define(const void* address, std::size_t bytes) noexcept {
    (void)VALGRIND_MAKE_MEM_DEFINED(address, bytes);
}

void close(const void* address, std::size_t bytes) noexcept {
    (void)VALGRIND_MAKE_MEM_NOACCESS(address, bytes);
}

void open(const void* address, std::size_t bytes) noexcept {
    (void)VALGRIND_MAKE_MEM_UNDEFINED(address, bytes);
}

bool is_closed(const void* address) noexcept {
    return ask_about(address) == 3;
}

}  // namespace
}  // namespace memcheck

const MemoryToolCalls memcheck_calls = {memcheck::allocate,    memcheck::resize,   memcheck::free,
                                        memcheck::free_within, memcheck::define,   memcheck::close,
                                        memcheck::open,        memcheck::is_closed};

bool is_memcheck_present() noexcept {
    if (RUNNING_ON_VALGRIND == 0) return false;
    if (memcheck::ask_about(&memcheck::pieces) != 1) return false;
    VALGRIND_CREATE_MEMPOOL_EXT(&memcheck::pieces, 0, 0,
                                VALGRIND_MEMPOOL_METAPOOL | VALGRIND_MEMPOOL_AUTO_FREE);
    return true;
}

}  // namespace tensorpool::platform
